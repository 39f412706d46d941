//! Argument lists. One that only names, chooses or orders the probe's own arguments is what the trace shows of them; any other is
//! captured by programs.

use usdtrec_format::ShownArgument;
use usdtrec_format::expr::{Capture, Expr, ExprError, Name};
use usdtrec_format::schema::{Argument, ArgumentType, Length};

use crate::error::RecordError;
use crate::error::UsageError;
use crate::plan::condition::ConditionError;
use crate::plan::condition::site::own_argument;
use crate::select::probe::{PlannedProbe, RefusedProbe};

/// Leaves out the probes of files that nobody named for which `check` fails. Returns those that are left out.
///
/// # Errors
/// The error of another probe; that of the first one if none is left, unless all are of other users' files and more are waited for (`may_wait`).
pub fn leave_out_unfit(
    probes: &mut Vec<PlannedProbe>,
    may_wait: bool,
    mut check: impl FnMut(&mut PlannedProbe) -> Result<(), RecordError>,
) -> Result<Vec<RefusedProbe>, RecordError> {
    let mut unfit = Vec::new();
    let mut fit = Vec::new();
    for mut probe in probes.drain(..) {
        match check(&mut probe) {
            Ok(()) => fit.push(probe),
            Err(error) => unfit.push(probe.refused_for(error)?),
        }
    }
    let is_passed_over = may_wait && unfit.iter().all(|unfit| unfit.probe.is_of_another_user());
    if fit.is_empty() && !unfit.is_empty() && !is_passed_over {
        return Err(unfit.swap_remove(0).error);
    }
    *probes = fit;
    Ok(unfit)
}

impl PlannedProbe {
    /// The argument list, if it computes any value.
    pub fn computed_list(&self) -> Option<&[Capture]> {
        let list = self.list.as_deref()?;
        list.iter().any(computes).then_some(list)
    }

    /// The first argument of the list that is computed.
    pub fn computed_argument(&self) -> Option<&Capture> {
        self.list.iter().flatten().find(|item| computes(item))
    }

    /// Finds the arguments that the list shows, unless it computes any.
    ///
    /// # Errors
    /// [`UsageError::Arguments`] for an unknown name, and if two arguments have one name.
    pub fn find_shown(&mut self) -> Result<(), UsageError> {
        if self.computed_list().is_some() {
            return Ok(());
        }
        let shown = self.list.as_deref().map(|list| self.shown_by(list));
        self.shown = shown.transpose().map_err(|error| UsageError::Arguments {
            event: self.event(),
            error,
        })?;
        Ok(())
    }

    fn shown_by(&self, list: &[Capture]) -> Result<Vec<ShownArgument>, ConditionError> {
        let mut all = Vec::<ShownArgument>::new();
        for item in list {
            let Expr::Name(name) = &item.value else {
                continue;
            };
            let Some(argument) = own_argument(name, &self.event(), &self.arguments)? else {
                let message = format!("{name} is in every event: remove it from the list");
                return Err(error(name.at, message));
            };
            let shown = ShownArgument {
                argument,
                name: item.name.clone(),
            };
            let called = shown.argument_from(&self.arguments).name;
            if all
                .iter()
                .any(|known| known.argument_from(&self.arguments).name == called)
            {
                let message = format!("two arguments are named {called}");
                return Err(error(name.at, message));
            }
            all.push(shown);
        }
        Ok(all)
    }

    /// The filter, with the probe's own names in place of those that the list gives.
    pub fn own_filter(&self) -> Option<Expr> {
        self.filter.as_ref().map(|filter| self.in_own_names(filter))
    }

    /// An expression in which names that the list gives to arguments are the probe's own.
    pub fn in_own_names(&self, expression: &Expr) -> Expr {
        let bound = expression.clone().bind(&mut |name| Ok(self.own_name(name)));
        bound.unwrap_or_else(|_| expression.clone())
    }

    fn own_name(&self, name: Name) -> Name {
        let bare = name.text.strip_prefix("args.").unwrap_or(&name.text);
        let mut list = self.list.iter().flatten();
        let renamed = list.find(|item| item.name.as_deref() == Some(bare));
        match renamed.map(|item| &item.value) {
            Some(Expr::Name(own)) => Name {
                text: own.text.clone(),
                at: name.at,
            },
            _ => name,
        }
    }

    /// Which of its own arguments are captured: those that the list shows, those with their lengths, and with `with_filter` those that the
    /// filter names. `None` for all of them. `arguments` has their types.
    pub fn needed(&self, with_filter: bool, arguments: &[Argument]) -> Option<Vec<bool>> {
        let shown = self.shown.as_ref()?;
        let mut needed = vec![false; arguments.len()];
        let mut need = |place: usize| {
            if let Some(is_needed) = needed.get_mut(place) {
                *is_needed = true;
            }
        };
        shown.iter().for_each(|shown| need(shown.argument));
        for name in self
            .own_filter()
            .filter(|_| with_filter)
            .iter()
            .flat_map(names)
        {
            if let Ok(Some(place)) = own_argument(&name, "", arguments) {
                need(place);
            }
        }
        for (place, argument) in arguments.iter().enumerate() {
            let length = length_of(argument).filter(|_| needed.get(place) == Some(&true));
            let known = |length: &str| arguments.iter().position(|known| known.name == length);
            if let Some(length) = length.and_then(known) {
                needed[length] = true;
            }
        }
        Some(needed)
    }
}

fn error(at: usize, message: String) -> ConditionError {
    ExprError { at, message }.into()
}

/// Whether an argument of a list is more than one of the probe's own.
const fn computes(item: &Capture) -> bool {
    !matches!(item.value, Expr::Name(_))
}

/// The argument that has the length of a string or of bytes.
pub fn length_of(argument: &Argument) -> Option<&str> {
    match &argument.kind {
        Some(
            ArgumentType::String(Some(Length::Argument(length)))
            | ArgumentType::Bytes(Length::Argument(length)),
        ) => Some(length),
        _ => None,
    }
}

/// The names in an expression.
pub fn names(expression: &Expr) -> Vec<Name> {
    let mut names = Vec::new();
    // The names are only collected.
    let _ = expression.clone().bind(&mut |name| {
        names.push(name);
        Ok(())
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::probe::made_up;

    /// What is wrong with the files of others ends no recording that may wait.
    #[test]
    fn unfit_probes_are_no_error_where_others_are_waited_for() {
        let Some(program) = made_up::program_of_another() else {
            return;
        };
        let own = PlannedProbe {
            list: Some(Capture::parse_list("user").unwrap()),
            ..made_up::probe("req", "8@%rdi", &made_up::program())
        };
        let unknown = PlannedProbe {
            list: Some(Capture::parse_list("user").unwrap()),
            ..made_up::probe("req", "8@%rdi", &program)
        };
        let named = PlannedProbe {
            is_found: false,
            ..unknown.clone()
        };
        let left = |mut probes: Vec<PlannedProbe>, may_wait| {
            let unfit = leave_out_unfit(&mut probes, may_wait, |probe| Ok(probe.find_shown()?));
            unfit.map(|unfit| (probes.len(), unfit.len())).ok()
        };
        assert_eq!(left(vec![unknown.clone()], true), Some((0, 1)));
        assert_eq!(left(vec![unknown.clone()], false), None);
        assert_eq!(left(vec![unknown.clone(), own], true), None);
        assert_eq!(left(vec![unknown, named], true), None);
        let fit = made_up::probe("other", "8@%rdi", &program);
        assert_eq!(left(vec![fit], false), Some((1, 0)));
    }
}
