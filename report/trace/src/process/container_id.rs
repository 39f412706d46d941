//! The container that a control group is of.

/// Digits of an id, as Docker, containerd, CRI-O and Podman make them.
const DIGITS: usize = 64;
/// Part of the names of groups of programs that watch a container from outside (`libpod-conmon-ID.scope`).
const WATCHER: &str = "conmon";

/// The id of the innermost container in the path of a control group: a directory `ID`, `WORD-ID.scope` (systemd's driver) or `…:WORD:ID`.
pub(crate) fn container_id(path: &str) -> Option<&str> {
    path.rsplit('/').find_map(|directory| {
        let name = directory.strip_suffix(".scope").unwrap_or(directory);
        let (before, id) = match name.rfind(['-', ':']) {
            Some(at) => (name.get(..at)?, name.get(at + 1..)?),
            None => ("", name),
        };
        let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_id = id.len() == DIGITS && id.bytes().all(digits);
        (is_id && !before.contains(WATCHER)).then_some(id)
    })
}

#[cfg(test)]
mod tests {
    use super::container_id;

    #[test]
    fn ids_of_the_runtimes() {
        let (id, other) = ("0123456789abcdef".repeat(4), "f".repeat(64));
        for path in [
            format!("/docker/{id}"),
            format!("/docker/{other}/docker/{id}"),
            format!("/docker/{id}/init.scope"),
            format!("/system.slice/docker-{id}.scope"),
            format!("/kubepods/burstable/pod12/{id}"),
            format!("/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-{id}.scope"),
            format!("/kubepods.slice/kubepods-pod1_2.slice/crio-{id}.scope"),
            format!("/machine.slice/libpod-{id}.scope/container"),
            format!("/system.slice/kubepods-pod1.slice:cri-containerd:{id}"),
        ] {
            assert_eq!(container_id(&path), Some(&*id), "{path}");
        }
        for path in [
            String::new(),
            "/".to_owned(),
            "/system.slice/cron.service".to_owned(),
            format!("/machine.slice/libpod-conmon-{id}.scope"),
            format!("/docker/{}", &id[1..]),
            format!("/docker/{id}0"),
            format!("/docker/{}", id.to_uppercase()),
            format!("/docker/é{id}"),
        ] {
            assert_eq!(container_id(&path), None, "{path}");
        }
    }
}
