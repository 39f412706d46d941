//! The built-in schemas, written from the public documentation of each provider.

use std::sync::LazyLock;

use crate::schema::{ProbeSchema, toml};

/// A file of the set, parsed at the first use.
struct File {
    providers: &'static [&'static str],
    text: &'static str,
    probes: LazyLock<Vec<ProbeSchema>>,
}

macro_rules! files {
    ($($name:literal for $($provider:literal)+;)*) => {
        [$(File {
            providers: &[$($provider),+],
            text: include_str!(concat!("../../../schemas/", $name, ".toml")),
            probes: LazyLock::new(|| {
                toml::parse(include_str!(concat!("../../../schemas/", $name, ".toml"))).probes
            }),
        }),*]
    };
}

static FILES: [File; 13] = files! {
    "hotspot" for "hotspot" "hs_private";
    "hotspot_jni" for "hotspot_jni";
    "libc" for "libc" "libpthread" "rtld";
    "libstdcxx" for "libstdcxx";
    "libvirt" for "libvirt";
    "mysql" for "mysql";
    "node" for "node";
    "php" for "php";
    "postgresql" for "postgresql";
    "python" for "python";
    "qemu" for "qemu";
    "ruby" for "ruby";
    "usdtrec" for "usdtrec";
};

/// The built-in schemas of a provider.
#[must_use]
pub fn of_provider(provider: &str) -> &'static [ProbeSchema] {
    let file = FILES.iter().find(|file| file.providers.contains(&provider));
    file.map_or(&[], |file| file.probes.as_slice())
}

/// All built-in schemas.
pub fn all() -> impl Iterator<Item = &'static ProbeSchema> {
    FILES.iter().flat_map(|file| file.probes.iter())
}

/// The texts of the built-in files.
pub fn texts() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probes whose arguments differ from build to build have a schema for each number of them.
    #[test]
    fn functions_of_cpython_may_have_their_frame() {
        for name in ["function__entry", "function__return"] {
            let probes = of_provider("python").iter();
            let of_name = probes.filter(|probe| probe.name == name);
            let names = of_name.map(|probe| -> Vec<&str> {
                let arguments = probe.arguments.iter();
                arguments.map(|argument| &*argument.name).collect()
            });
            let expected = [
                vec!["filename", "funcname", "lineno"],
                vec!["filename", "funcname", "lineno", "frame"],
            ];
            assert_eq!(names.collect::<Vec<_>>(), expected, "{name}");
        }
    }
}
