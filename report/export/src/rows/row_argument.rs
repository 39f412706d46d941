//! An argument of an event.

use usdtrec_format::Value;
use usdtrec_format::schema::Argument;
use usdtrec_trace::form::Form;

use crate::rows::row_value::RowValue;

/// What is the same for an argument in all events of a probe.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentFormat {
    pub(crate) form: Form,
    /// As `report` names the type.
    pub(crate) kind: String,
}

/// An argument of an event.
#[derive(Clone, Copy, Debug)]
pub struct RowArgument<'r> {
    pub(crate) argument: &'r Argument,
    pub(crate) format: &'r ArgumentFormat,
    pub(crate) value: &'r Value,
}

impl<'r> RowArgument<'r> {
    /// Its name; `arg1`, … if it has none.
    #[must_use]
    pub fn name(&self) -> &'r str {
        &self.argument.name
    }

    /// Its type: what a schema says (`s32`, `str`, `enum`), else size and sign of the operand (`u64`), several with `/` between them if they differ between sites; empty if
    /// it is not known.
    #[must_use]
    pub fn kind(&self) -> &'r str {
        &self.format.kind
    }

    /// Its value, or why there is none.
    #[must_use]
    pub fn value(&self) -> RowValue<'r> {
        RowValue::new(&self.format.form, self.value)
    }
}
