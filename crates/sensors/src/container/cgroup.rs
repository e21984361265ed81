//! Where a process's cgroups lie.
//!
//! `/proc/PID/cgroup` names one path for each hierarchy; `/proc/self/mountinfo` says where hierarchies are mounted and
//! which part of them. A machine has v1 hierarchies (one or several controllers each), the one v2 hierarchy, or both;
//! what a controller reports is found where that controller is. Pure, but for the question whether a folder exists.

use std::path::{Path, PathBuf};

/// One line of `/proc/PID/cgroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Membership<'a> {
    /// `None`: the v2 hierarchy. Otherwise v1's comma-separated controllers, or `name=…`.
    controllers: Option<&'a str>,
    path: &'a str,
}

/// One cgroup line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// `None`: v2.
    controllers: Option<String>,
    /// The part of the hierarchy that is mounted.
    root: String,
    at: PathBuf,
}

/// Which files speak for a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

/// Where a controller's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) version: Version,
    pub(super) folder: PathBuf,
}

/// Why there is no such place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// No hierarchy of this machine has the controller, or none that we can see from here.
    NotThere,
    /// The process is in a cgroup that it shares with the machine or with Drowse itself.
    NotOwn,
    /// The cgroup was removed.
    Gone,
}

/// Lines that make no sense are left out: whatever they would have told is then [`Lack::NotThere`].
pub(super) fn memberships(text: &str) -> Vec<Membership<'_>> {
    text.lines()
        .filter_map(|line| {
            // A path may contain colons, so only the first two count.
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            super::parse::digits(number)?;
            path.starts_with('/')
                .then_some(Membership { controllers: (!controllers.is_empty()).then_some(controllers), path })
        })
        .collect()
}

/// All mounts of cgroups, in the order of the file. Other lines are none of our business.
pub(super) fn mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    // 36 35 98:0 /root /at options optional… - type source super-options
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, at) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let controllers = match after.next()? {
        "cgroup" => Some(after.next_back()?.to_owned()),
        "cgroup2" => None,
        _ => return None,
    };
    Some(Mount { controllers, root: unescape(root), at: PathBuf::from(unescape(at)) })
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            Some(byte) if byte.is_ascii() => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            _ => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

/// Everything that is needed to find a place.
#[derive(Debug)]
pub(super) struct Atlas<'a> {
    /// Put before every mount point: `/`, unless a test has a machine in a folder.
    pub(super) root: &'a Path,
    pub(super) mounts: &'a [Mount],
    pub(super) of_process: &'a [Membership<'a>],
    /// Drowse's own.
    pub(super) of_self: &'a [Membership<'a>],
    /// The container's id, if it is known.
    pub(super) id: Option<&'a str>,
}

impl Atlas<'_> {
    /// The cgroup of the container in the hierarchy that has `controller`.
    ///
    /// v1 first: a controller is in one hierarchy only, and on a hybrid machine the v2 hierarchy has no controllers.
    pub(super) fn place(&self, controller: &str) -> Result<Place, Lack> {
        let v1 = |member: &&Membership<'_>| has(member.controllers, controller);
        if let Some(member) = self.of_process.iter().find(v1) {
            let own = self.of_self.iter().find(v1);
            let folder = self.folder(member, own, |mount| has(mount.controllers.as_deref(), controller))?;
            return Ok(Place { version: Version::V1, folder });
        }
        let v2 = |member: &&Membership<'_>| member.controllers.is_none();
        let member = self.of_process.iter().find(v2).ok_or(Lack::NotThere)?;
        let own = self.of_self.iter().find(v2);
        let folder = self.folder(member, own, |mount| mount.controllers.is_none())?;
        Ok(Place { version: Version::V2, folder })
    }

    fn folder(
        &self,
        member: &Membership<'_>,
        own: Option<&Membership<'_>>,
        is_of_hierarchy: impl Fn(&Mount) -> bool,
    ) -> Result<PathBuf, Lack> {
        // So the kernel marks a cgroup whose folder is gone. A living cgroup may bear that name, but no engine's does.
        if member.path.ends_with(" (deleted)") {
            return Err(Lack::Gone);
        }
        let path = whole(member.path, self.id);
        if path == "/" || own.is_some_and(|own| own.path == path) {
            return Err(Lack::NotOwn);
        }
        self.mounts
            .iter()
            .filter(|mount| is_of_hierarchy(mount))
            .filter_map(|mount| {
                let below = below(path, &mount.root)?;
                let at = mount.at.strip_prefix("/").unwrap_or(&mount.at);
                Some(self.root.join(at).join(below))
            })
            .find(|folder| folder.is_dir())
            .ok_or(Lack::NotThere)
    }
}

fn has(controllers: Option<&str>, wanted: &str) -> bool {
    controllers.is_some_and(|all| all.split(',').any(|one| one == wanted))
}

/// The cgroup of the whole container, given that of its first process.
///
/// An init such as systemd moves itself into a child cgroup (`…/docker-ID.scope/init.scope`). Read there, a container
/// that works hard would look idle. Engines put the id into the name, so the path ends at that name: at the first that
/// contains the id, or, if it is not known, at the last that contains 64 hexadecimal digits in a row.
fn whole<'a>(path: &'a str, id: Option<&str>) -> &'a str {
    let mut end = 0;
    let mut found = None;
    for name in path.split_inclusive('/') {
        end += name.len();
        let name = name.trim_end_matches('/');
        match id {
            Some(id) if name.contains(id) => {
                found = Some(end);
                break;
            }
            None if has_id(name) => found = Some(end),
            _ => {}
        }
    }
    let whole = found.map_or(path, |end| &path[..end]);
    if whole.len() > 1 { whole.trim_end_matches('/') } else { whole }
}

fn has_id(name: &str) -> bool {
    name.split(|c: char| !matches!(c, '0'..='9' | 'a'..='f')).any(|run| run.len() == 64)
}

/// The rest of `path` below `root`. `None` if it is not below, or outside of our cgroup namespace (`/../…`).
fn below<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(root.trim_end_matches('/'))?;
    let rest = if rest.is_empty() { rest } else { rest.strip_prefix('/')? };
    rest.split('/').all(|name| name != "..").then_some(rest)
}

#[cfg(test)]
mod tests;
