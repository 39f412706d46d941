//! Arguments as an argument list shows them that only names, chooses or orders them.

use serde::{Deserialize, Serialize};

use crate::schema::Argument;

/// An argument of such a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShownArgument {
    /// Index among the probe's own arguments.
    pub argument: usize,
    /// Name in place of the argument's own; `None` for its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ShownArgument {
    /// The argument as it is shown. `arguments` are the probe's own.
    #[must_use]
    pub fn argument_from(&self, arguments: &[Argument]) -> Argument {
        let own = arguments.get(self.argument).cloned();
        let mut argument = own.unwrap_or_else(|| Argument::unnamed(self.argument));
        if let Some(name) = &self.name {
            argument.name.clone_from(name);
        }
        argument
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_replaces_the_own_one_and_nothing_else() {
        let own = [Argument {
            description: Some("where".to_owned()),
            ..Argument::named("port")
        }];
        let shown = |argument, name: Option<&str>| {
            let name = name.map(str::to_owned);
            ShownArgument { argument, name }.argument_from(&own)
        };
        assert_eq!(shown(0, None), own[0]);
        let renamed = shown(0, Some("p"));
        assert_eq!(renamed.name, "p");
        assert_eq!(renamed.description, own[0].description);
        assert_eq!(shown(3, None), Argument::unnamed(3), "of a damaged file");
    }
}
