//! Probes at which functions of a script are called and return.

use serde::{Deserialize, Serialize};

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

/// A part of a function's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamePart<'c> {
    /// A text as it is.
    Text(&'c str),
    /// The value of the argument of this name.
    Argument(&'c str),
}

impl ScriptCall {
    /// The parts of the function's name; `None` if a brace has no partner, or no argument is named.
    #[must_use]
    pub fn parts(&self) -> Option<Vec<NamePart<'_>>> {
        let mut parts = Vec::new();
        let mut rest = self.function.as_str();
        while let Some((text, after)) = rest.split_once('{') {
            let (argument, after) = after.split_once('}')?;
            if text.contains('}') || argument.is_empty() || argument.contains('{') {
                return None;
            }
            if !text.is_empty() {
                parts.push(NamePart::Text(text));
            }
            parts.push(NamePart::Argument(argument));
            rest = after;
        }
        if rest.contains('}') || parts.is_empty() {
            return None;
        }
        if !rest.is_empty() {
            parts.push(NamePart::Text(rest));
        }
        Some(parts)
    }

    /// The names of all arguments that it needs; `None` if the name is malformed.
    #[must_use]
    pub fn arguments(&self) -> Option<Vec<&str>> {
        let parts = self.parts()?;
        let named = parts.into_iter().filter_map(|part| match part {
            NamePart::Argument(name) => Some(name),
            NamePart::Text(_) => None,
        });
        Some(named.chain(self.file.as_deref()).collect())
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
