//! The choice of a schema for a probe.
//!
//! Files of the command line take precedence over the user's directory (`~/.config/usdtrec/schemas`), and that over the
//! built-in set. The first source that has the probe with as many arguments as the note is used; sources are not
//! combined. Names and types are found when recording and stored. So the trace is self-contained on any host, `perf
//! script` prints the names, too, and `--schema` replaces them later.

use std::collections::HashMap;
use std::fmt;

use crate::schema::catalog::probe::note_name;
use crate::schema::{Argument, ProbeSchema, bundled};

/// Schemas from several sources, in the order of precedence. The default has none.
///
/// Sources in the order of precedence: files given on the command line, the last one first; the user's
/// directory; the built-in set. The first source with a schema for the provider, the name and the number of
/// arguments of the note is used. Its gaps are not filled from other sources. A source may have
/// several schemas for a probe, for the versions of its program, which differ in the number of arguments.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    places: Vec<SchemaSource>,
    /// Whether the built-in set comes last.
    built_in: bool,
}

/// A source of schemas.
#[derive(Clone, Debug)]
struct SchemaSource {
    name: String,
    probes: HashMap<(String, String), Vec<ProbeSchema>>,
}

/// The schema chosen for a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The schema; `None` if no source has one.
    pub schema: Option<ProbeSchema>,
    /// The source of the schema: a file, or [`Schemas::BUNDLED`].
    pub place: String,
    /// Schemas with higher precedence that have a different number of arguments.
    pub misfits: Vec<Misfit>,
}

/// A schema with a different number of arguments than the probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The source of the schema.
    pub place: String,
    /// Number of arguments in the schema.
    pub claimed: usize,
    /// Number of arguments of the probe.
    pub found: usize,
}

/// A schema, with the name of its source.
#[derive(Clone, Copy, Debug)]
pub struct SourcedSchema<'a> {
    /// Name of the source: a file, or [`Schemas::BUNDLED`].
    pub source: &'a str,
    /// The schema.
    pub schema: &'a ProbeSchema,
}

impl Schemas {
    /// Origin of the built-in schemas.
    pub const BUNDLED: &str = "bundled";

    /// The built-in schemas only.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            built_in: true,
            ..Self::default()
        }
    }

    /// Whether there are no schemas.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty() && !self.built_in
    }

    /// Adds a source, which takes precedence over those added before.
    pub fn add(&mut self, name: impl Into<String>, probes: impl IntoIterator<Item = ProbeSchema>) {
        let mut place = SchemaSource {
            name: name.into(),
            probes: HashMap::new(),
        };
        for probe in probes {
            let key = (probe.provider.clone(), note_name(&probe.name));
            place.probes.entry(key).or_default().push(probe);
        }
        self.places.insert(0, place);
    }

    /// All schemas, in the order of precedence. A source may have several for a probe.
    pub fn all(&self) -> impl Iterator<Item = SourcedSchema<'_>> {
        let places = self.places.iter().flat_map(|place| {
            let mut probes: Vec<_> = place.probes.values().flatten().collect();
            probes.sort_by_key(|probe| (&probe.provider, &probe.name, probe.arguments.len()));
            probes.into_iter().map(|schema| SourcedSchema {
                source: &place.name,
                schema,
            })
        });
        let built_in = self.built_in.then(bundled::all).into_iter().flatten();
        places.chain(built_in.map(|schema| SourcedSchema {
            source: Self::BUNDLED,
            schema,
        }))
    }

    /// Chooses the schema for a probe with this number of arguments.
    #[must_use]
    pub fn choose(&self, provider: &str, name: &str, arguments: usize) -> Choice {
        let mut misfits = Vec::new();
        let key = (provider.to_owned(), note_name(name));
        let built_in = if self.built_in {
            bundled::of_provider(provider)
        } else {
            &[]
        };
        let places = self.places.iter().map(|place| {
            let probes = place.probes.get(&key).map_or(&[][..], Vec::as_slice);
            (place.name.as_str(), probes.iter().collect::<Vec<_>>())
        });
        let built_in = std::iter::once_with(|| {
            let same = |probe: &&ProbeSchema| probe.provider == key.0 && probe.name == key.1;
            (Self::BUNDLED, built_in.iter().filter(same).collect())
        });
        for (place, schemas) in places.chain(built_in) {
            if let Some(schema) = schemas.iter().find(|schema| schema.fits(arguments)) {
                return Choice {
                    schema: Some((*schema).clone()),
                    place: place.to_owned(),
                    misfits,
                };
            }
            misfits.extend(schemas.iter().map(|schema| Misfit {
                place: place.to_owned(),
                claimed: schema.arguments.len(),
                found: arguments,
            }));
        }
        Choice {
            misfits,
            ..Choice::default()
        }
    }
}

impl Choice {
    /// The descriptions of `count` arguments.
    #[must_use]
    pub fn arguments(&self, count: usize) -> Vec<Argument> {
        let known = self.schema.as_ref();
        let known = known.map_or(&[][..], |schema| schema.arguments.as_slice());
        let one = |place| {
            let known = known.get(place).cloned();
            known.unwrap_or_else(|| Argument::unnamed(place))
        };
        (0..count).map(one).collect()
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claimed, found, .. } = self;
        write!(
            f,
            "the schema is for {}, the note has {found}: not used",
            crate::counted(*claimed, "argument")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(names: &[&str], more: bool) -> ProbeSchema {
        ProbeSchema {
            provider: "p".to_owned(),
            name: "n__x".to_owned(),
            arguments: names.iter().map(|name| Argument::named(*name)).collect(),
            more,
            ..ProbeSchema::default()
        }
    }

    fn names(choice: &Choice, count: usize) -> Vec<String> {
        let arguments = choice.arguments(count);
        arguments
            .into_iter()
            .map(|argument| argument.name)
            .collect()
    }

    #[test]
    fn the_first_place_that_fits_is_taken_whole() {
        let mut schemas = Schemas::default();
        schemas.add(
            "low",
            [schema(&["a", "b"], false), schema(&["a", "b", "c"], false)],
        );
        schemas.add(
            "high",
            [schema(&["x"], false), schema(&["x", "y", "z", "w"], true)],
        );
        let choice = schemas.choose("p", "n-x", 2);
        assert_eq!(choice.place, "low");
        assert_eq!(names(&choice, 2), ["a", "b"]);
        let claimed: Vec<usize> = choice.misfits.iter().map(|misfit| misfit.claimed).collect();
        assert_eq!(claimed, [1, 4]);
        let choice = schemas.choose("p", "n__x", 5);
        assert_eq!(choice.place, "high");
        assert_eq!(names(&choice, 5), ["x", "y", "z", "w", "arg5"]);
        let none = schemas.choose("q", "n__x", 2);
        assert_eq!(none, Choice::default());
        assert_eq!(names(&none, 2), ["arg1", "arg2"]);
    }
}
