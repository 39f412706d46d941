//! What JSON and CSV have of a row.

use serde_json::Value;

use crate::report::groups::float;
use crate::text::quoted::Csv;

/// A member of an object, and a column.
pub(super) struct Member {
    pub(super) name: String,
    /// `None` if the object does not have it, and the column nothing.
    pub(super) value: Option<Value>,
    /// The field of the column, if it is not that of the value.
    field: Option<String>,
    pub(super) is_column: bool,
}

impl Member {
    pub(super) fn new(name: impl Into<String>, value: Option<Value>) -> Self {
        Self {
            name: name.into(),
            value,
            field: None,
            is_column: true,
        }
    }

    /// One that CSV has only if something is so.
    pub(super) const fn column_if(mut self, is_column: bool) -> Self {
        self.is_column = is_column;
        self
    }

    /// One with another field in CSV.
    pub(super) fn with_field(mut self, field: Option<String>) -> Self {
        self.field = field;
        self
    }

    /// One that has a value only if something is so.
    pub(super) fn only_if(mut self, has_value: bool) -> Self {
        self.value = self.value.filter(|_| has_value);
        self
    }

    /// The field of CSV.
    pub(super) fn field(&self, csv: Csv) -> String {
        match (&self.field, &self.value) {
            (Some(field), _) => field.clone(),
            (None, None | Some(Value::Null)) => String::new(),
            (None, Some(Value::String(text))) => csv.field(text).into_owned(),
            (None, Some(Value::Number(number))) => match number.as_f64() {
                Some(real) if number.is_f64() => float(real),
                _ => number.to_string(),
            },
            (None, Some(value)) => csv.field(&value.to_string()).into_owned(),
        }
    }
}
