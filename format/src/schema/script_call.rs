//! What a hit of a probe says besides its arguments: that a function of a script is called or returns, or what is done with a lock.

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

/// What a hit of a probe says of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockUse {
    /// What the thread does.
    pub action: LockAction,
    /// The argument that says which lock.
    pub lock: String,
    /// Whether it is acquired together with others that share it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Whether the argument says a group of locks, of all processes: then it is not known which of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub group: bool,
    /// Of a release: whether the probe fires only while another thread waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contended: bool,
}

/// What a thread does with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockAction {
    /// It begins to wait for the lock, or to acquire it.
    Waits,
    /// It waits no more, and may not have it yet.
    Waited,
    /// It has the lock.
    Acquires,
    /// It has the lock no more, or not for long.
    Releases,
}

impl LockAction {
    /// All of them, with the keys of schema files.
    pub const ALL: [(&str, Self); 4] = [
        ("waits", Self::Waits),
        ("waited", Self::Waited),
        ("acquires", Self::Acquires),
        ("releases", Self::Releases),
    ];

    /// Its key in schema files.
    #[must_use]
    pub fn key(self) -> &'static str {
        let mut all = Self::ALL.iter();
        let known = all.find(|(_, action)| *action == self);
        known.map_or("", |(key, _)| key)
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
