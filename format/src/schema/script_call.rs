//! Probes at which functions of a script are called and return.

use serde::{Deserialize, Serialize};

use super::name_parts::{NamePart, arguments_of, name_parts};

/// What a hit of a probe says of the functions of a script (PHP, Python, Ruby, …): one is called, or returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptCall {
    /// Whether the function is called; else it returns, or is left by an exception.
    pub enters: bool,
    /// The function's name: a text with `{ARGUMENT}` where the value of an argument belongs.
    pub function: String,
    /// The argument with the path of the function's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl ScriptCall {
    /// The parts of the function's name; `None` if a brace has no partner, or no argument is named.
    #[must_use]
    pub fn parts(&self) -> Option<Vec<NamePart<'_>>> {
        let parts = name_parts(&self.function)?;
        let has_argument = arguments_of(&parts).next().is_some();
        has_argument.then_some(parts)
    }

    /// The names of all arguments that it needs; `None` if the name is malformed.
    #[must_use]
    pub fn arguments(&self) -> Option<Vec<&str>> {
        let parts = self.parts()?;
        Some(arguments_of(&parts).chain(self.file.as_deref()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(function: &str) -> ScriptCall {
        ScriptCall {
            enters: true,
            function: function.to_owned(),
            file: Some("file".to_owned()),
        }
    }

    #[test]
    fn names_have_parts() {
        let method = call("{class}#{method}()");
        let parts = [
            NamePart::Argument("class"),
            NamePart::Text("#"),
            NamePart::Argument("method"),
            NamePart::Text("()"),
        ];
        assert_eq!(method.parts().as_deref(), Some(&parts[..]));
        assert_eq!(method.arguments(), Some(vec!["class", "method", "file"]));
        for wrong in ["", "f", "{", "{}", "{a", "a}", "{a}}", "{a{b}}", "}{a}"] {
            assert_eq!(call(wrong).parts(), None, "{wrong}");
        }
    }
}
