//! Fields that cannot be shown.

/// Why a choice of fields cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// No field is called so.
    #[error("no field {name:?}; there are: {known},args.NAME")]
    Unknown {
        /// The name.
        name: String,
        /// The fields, separated by commas.
        known: String,
    },
    /// perf script has the field.
    #[error("perf's field {name} is not shown: {reason}")]
    OfPerf {
        /// The field.
        name: String,
        /// Why it is not shown.
        reason: &'static str,
    },
    /// A type of events is in front of the field, as perf script has it.
    #[error("TYPE:FIELDS is not supported: give {0:?} without the type")]
    OfOneKind(String),
    /// All arguments and some of them.
    #[error("args are all arguments: give args, or args.NAME alone")]
    AllArguments,
    /// A list, and changes.
    #[error("fields with + or - in front cannot be mixed with others")]
    Mixed,
    /// The name of an argument is missing.
    #[error("expected the name of an argument after args.")]
    NoArgument,
    /// Arguments are both requested and left out.
    #[error("args.NAME lists the arguments to show: -args.NAME has no effect")]
    ArgumentsRemoved,
}
