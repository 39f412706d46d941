//! What is known of a sample from other samples.

use std::sync::Arc;

use crate::added::added_argument::AddedValues;
use crate::calls::paths::CallPath;

/// What is known of a sample from other samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct HitContext<'a> {
    /// The functions of the script that its thread is in; `None` if they are not requested.
    pub path: Option<CallPath>,
    /// The values of the arguments that were added to its event; `None` if there are none.
    pub added: Option<&'a Arc<AddedValues>>,
}
