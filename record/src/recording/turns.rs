//! Whose turn it is: any user can have any number of files, and those of others do not wait for them.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use usdtrec_attach::places::Account;

/// The next account after the last one of which something is due.
pub(super) fn next<T>(
    waiting: &BTreeMap<Account, T>,
    last: Account,
    is_due: impl Fn(&T) -> bool,
) -> Option<Account> {
    let after = waiting.range((Excluded(last), Unbounded));
    let mut accounts = after.chain(waiting.range(..=last));
    let due = accounts.find(|(_, waiting)| is_due(waiting));
    due.map(|(account, _)| *account)
}
