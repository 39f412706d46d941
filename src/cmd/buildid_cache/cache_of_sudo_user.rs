//! `sudo usdtrec buildid-cache --add`: the user who called sudo finds in the own cache what root's has got.

use std::process::{ExitStatus, Stdio};
use std::{env, io};

use usdtrec_buildid_cache::Cache;

use crate::sudo_user::SudoUser;
use crate::terminal::{inform, say};

/// Runs this command again for the user who called sudo, if there is one and no cache was chosen, with their rights. What it prints on stdout was printed
/// already. A failure is said and is not one of root's command.
pub(super) fn repeat(cache: &Cache) {
    let user = SudoUser::from_environment();
    let Some(user) = user.filter(|_| cache.is_of_home()) else {
        return;
    };
    inform(format_args!(
        "usdtrec: the same in the cache of user {}, who called sudo",
        user.id
    ));
    match run(user) {
        Ok(status) if status.success() => {}
        Ok(status) => say(format_args!(
            "usdtrec: in the cache of user {}, not everything was added ({status})",
            user.id
        )),
        Err(error) => say(format_args!(
            "usdtrec: nothing was added to the cache of user {}: {error}",
            user.id
        )),
    }
}

fn run(user: SudoUser) -> io::Result<ExitStatus> {
    let mut program = user.program()?;
    program
        .args(env::args_os().skip(1))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    program.status()
}
