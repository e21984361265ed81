use proptest::prelude::*;

use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";

const V1: &str = "\
22 1 0:20 / /proc rw - proc proc rw
30 24 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/systemd rw shared:11 master:2 - cgroup cgroup rw,xattr,name=systemd
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:12 - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
34 30 0:30 / /sys/fs/cgroup/pids\\040and\\134more rw - cgroup cgroup rw,pids
35 30 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

fn places(
    mounts_text: &str,
    of_process: &str,
    of_self: &str,
    id: Option<&str>,
    folders: &[&str],
) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    for folder in folders {
        std::fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    let mounts = mounts(mounts_text);
    let (of_process, of_self) = (memberships(of_process), memberships(of_self));
    let atlas = Atlas { root: root.path(), mounts: &mounts, of_process: &of_process, of_self: &of_self, id };
    ["cpuacct", "memory", "pids"]
        .map(|controller| match atlas.place(controller) {
            Ok(Place { version, folder }) => {
                let folder = folder.strip_prefix(root.path()).unwrap().display().to_string();
                format!("{version:?} {folder}")
            }
            Err(lack) => format!("{lack:?}"),
        })
        .to_vec()
}

#[test]
fn a_path_may_hold_colons_and_spaces() {
    let text = "12:cpu,cpuacct:/a:b/c d\n1:name=systemd:/x\n0::/two::colons\nnonsense\n7:pids\nx:memory:/y\n5:memory:relative\n";
    let expected = [(Some("cpu,cpuacct"), "/a:b/c d"), (Some("name=systemd"), "/x"), (None, "/two::colons")];
    let found: Vec<_> = memberships(text).iter().map(|member| (member.controllers, member.path)).collect();
    assert_eq!(found, expected);
}

#[test]
fn mounts_of_other_kinds_are_passed_over() {
    let found = mounts(V1);
    assert_eq!(found.len(), 5);
    assert_eq!(found[3].at, Path::new("/sys/fs/cgroup/pids and\\more"));
    assert_eq!(found[4].controllers, None);
    assert_eq!(mounts("36 35 98:0 / /mnt rw\n\n- - -\n"), []);
}

#[test]
fn an_escape_that_is_none_stays() {
    for (text, plain) in
        [("a\\040b", "a b"), ("a\\04", "a\\04"), ("\\", "\\"), ("\\999", "\\999"), ("ä\\011", "ä\t")]
    {
        assert_eq!(unescape(text), plain);
    }
}

#[test]
fn v1_has_a_hierarchy_for_each_controller() {
    let of_process =
        format!("4:pids:/docker/{ID}\n3:memory:/docker/{ID}\n2:cpu,cpuacct:/docker/{ID}\n0::/\n");
    let cpu = format!("sys/fs/cgroup/cpu,cpuacct/docker/{ID}");
    let memory = format!("sys/fs/cgroup/memory/docker/{ID}");
    let pids = format!("sys/fs/cgroup/pids and\\more/docker/{ID}");
    assert_eq!(
        places(V1, &of_process, "", None, &[&cpu, &memory, &pids]),
        [format!("V1 {cpu}"), format!("V1 {memory}"), format!("V1 {pids}")]
    );
    assert_eq!(
        places(V1, &of_process, "", None, &[&cpu, &pids]),
        [format!("V1 {cpu}"), "NotThere".to_owned(), format!("V1 {pids}")],
        "one that is missing takes nothing from the others"
    );
}

#[test]
fn v2_has_one_for_all() {
    let mounts = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
    let folder = format!("sys/fs/cgroup/system.slice/docker-{ID}.scope");
    let of_process = format!("0::/system.slice/docker-{ID}.scope\n");
    let expected = format!("V2 {folder}");
    assert_eq!(
        places(mounts, &of_process, "0::/system.slice/drowse.service\n", None, &[&folder]),
        [&*expected; 3]
    );
}

#[test]
fn on_a_hybrid_machine_each_controller_is_where_it_is() {
    let mounts = "\
30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
";
    let of_process = format!("2:memory:/docker/{ID}\n0::/box/{ID}\n");
    let folders = [format!("sys/fs/cgroup/unified/box/{ID}"), format!("sys/fs/cgroup/memory/docker/{ID}")];
    assert_eq!(
        places(mounts, &of_process, "", None, &[&folders[0], &folders[1]]),
        [format!("V2 {}", folders[0]), format!("V1 {}", folders[1]), format!("V2 {}", folders[0])]
    );
}

#[test]
fn what_is_shared_with_the_machine_or_with_us_is_not_its_own() {
    let of_process = "4:pids:/ours\n3:memory:/\n2:cpuacct:/ours/child\n";
    let mounts = V1.replace("cpu,cpuacct rw", "cpu rw");
    assert_eq!(
        places(
            &mounts,
            of_process,
            "4:pids:/ours\n2:cpuacct:/ours\n",
            None,
            &["sys/fs/cgroup/cpu/ours/child"]
        ),
        ["V1 sys/fs/cgroup/cpu/ours/child", "NotOwn", "NotOwn"]
    );
}

#[test]
fn a_removed_cgroup_is_gone() {
    let of_process = "4:pids:/box/one (deleted)\n";
    assert_eq!(places(V1, of_process, "", None, &["sys/fs/cgroup/pids and\\more/box/one"])[2], "Gone");
}

#[test]
fn only_a_part_of_a_hierarchy_may_be_mounted() {
    let mounts = "30 24 0:26 /outer/box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    let place = |path: &str, folder| places(mounts, &format!("0::{path}\n"), "", None, &[folder])[0].clone();
    assert_eq!(place("/outer/box/inner", "sys/fs/cgroup/inner"), "V2 sys/fs/cgroup/inner");
    assert_eq!(
        place("/outer/boxes/inner", "sys/fs/cgroup/inner"),
        "NotThere",
        "another name that begins alike"
    );
    assert_eq!(place("/elsewhere", "sys/fs/cgroup/elsewhere"), "NotThere");
    let whole = mounts.replace("/outer/box", "/");
    let outside = places(&whole, "0::/../beside\n", "", None, &["sys/fs/cgroup", "sys/fs/beside"]);
    assert_eq!(outside[0], "NotThere", "outside of our cgroup namespace");
}

#[test]
fn of_several_mounts_the_first_that_shows_it_counts() {
    let mounts = "\
30 24 0:26 /other /mnt/other rw - cgroup2 cgroup2 rw
31 24 0:26 / /mnt/hidden rw - cgroup2 cgroup2 rw
32 24 0:26 / /mnt/whole rw - cgroup2 cgroup2 rw
";
    assert_eq!(places(mounts, "0::/box\n", "", None, &["mnt/other", "mnt/whole/box"])[0], "V2 mnt/whole/box");
}

#[test]
fn the_cgroup_is_that_of_the_whole_container_not_of_its_init() {
    for (path, id, expected) in [
        (format!("/docker/{ID}/init.scope"), None, format!("/docker/{ID}")),
        (
            format!("/system.slice/docker-{ID}.scope/init.scope"),
            None,
            format!("/system.slice/docker-{ID}.scope"),
        ),
        (format!("/docker/{ID}"), None, format!("/docker/{ID}")),
        // Docker in Docker, seen from outside: the inner one is the container, unless the id says otherwise.
        (format!("/docker/{ID}/docker/{OTHER}/x"), None, format!("/docker/{ID}/docker/{OTHER}")),
        (format!("/docker/{ID}/docker/{OTHER}/x"), Some(ID), format!("/docker/{ID}")),
        (format!("/docker/{ID}/a/{ID}"), Some(ID), format!("/docker/{ID}")),
        ("/custom/name/init".to_owned(), None, "/custom/name/init".to_owned()),
        ("/custom/name/init".to_owned(), Some(ID), "/custom/name/init".to_owned()),
        ("/".to_owned(), None, "/".to_owned()),
        (format!("/{ID}0/x"), None, format!("/{ID}0/x")),
    ] {
        assert_eq!(whole(&path, id), expected, "{path} {id:?}");
    }
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in "[-/ :.\\\\0-9a-fäcgroup2,=\n]{0,200}", id in "[a-f0-9]{1,4}") {
        for member in memberships(&text) {
            prop_assert!(member.path.starts_with(whole(member.path, None)));
            prop_assert!(member.path.starts_with(whole(member.path, Some(&id))));
            let _ = below(member.path, &text);
        }
        let _ = (mounts(&text), unescape(&text));
        let line = format!("1 2 3 {text} - cgroup {text}");
        let _ = mounts(&line);
    }
}
