//! What each driver needs to know about a worker.

use std::path::PathBuf;

use toml::de::DeValue;

use drowse_core::policy::Selectors;
use drowse_core::signal::DriverKind;

use super::super::problem::{Fault, Report};
use super::super::read;
use super::super::section::{Field, Node, Preset, Section, describe};
use super::TYPE_CML;

/// A worker as its driver sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Driver {
    /// A plain process.
    Process {
        /// The program and its arguments.
        command: Vec<String>,
        /// Where it is started; unless given, in the data folder.
        directory: Option<PathBuf>,
    },
    /// A container.
    Docker {
        /// Which one.
        container: Container,
    },
    /// A microVM.
    Qemu {
        /// What it boots.
        boot: Boot,
        /// Its memory, in bytes.
        memory: u64,
        /// Its processors.
        cpus: u32,
    },
    /// A cloud VM. Its region is the worker's.
    Ec2 {
        /// The instance.
        instance_id: String,
        /// How its CML is reached, if it is a CML controller.
        cml: Option<CmlAccess>,
    },
    /// The simulated driver of the tests.
    Sim,
}

/// How a container is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Container {
    /// By its name or id.
    Named(String),
    /// By a label, `KEY` or `KEY=VALUE`, so that a container that was made anew is the same worker.
    Labelled(String),
}

/// What a microVM boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// A kernel that is loaded directly.
    pub kernel: Option<PathBuf>,
    /// Its first file system.
    pub initrd: Option<PathBuf>,
    /// Its command line.
    pub append: Option<String>,
    /// A disk.
    pub image: Option<PathBuf>,
}

/// How a CML controller is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CmlAccess {
    /// Its address; unless given, the instance's own.
    pub endpoint: Option<String>,
    /// What is asked of its certificate.
    pub tls: CmlTls,
}

/// What is asked of a certificate. CML's are self-signed as a rule, and that is never accepted silently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CmlTls {
    /// That somebody whom the system trusts has signed it.
    #[default]
    Verified,
    /// That it is this one: the SHA-256 of it, in lower case.
    Pinned(String),
    /// Nothing, because somebody said so.
    Unverified,
}

pub(in super::super) const PROCESS: &[Field] = &[
    Field {
        name: "command",
        expected: "a program and its arguments such as [\"python3\", \"-m\", \"http.server\", \"9001\"]",
        preset: Preset::Required,
        sample: "[\"python3\", \"-m\", \"http.server\", \"9001\"]",
        describe: "The program and its arguments; no shell is involved.",
    },
    Field {
        name: "directory",
        expected: "the path of a folder",
        preset: Preset::Absent("the data folder"),
        sample: "\"/srv/web\"",
        describe: "Where it is started.",
    },
];

pub(in super::super) const DOCKER: &[Field] = &[
    Field {
        name: "container",
        expected: "the name or id of a container; or instead of it label, a label that one container has",
        preset: Preset::Absent("see label"),
        sample: "\"jupyter-alice\"",
        describe: "The container's name or id. Either this or label.",
    },
    Field {
        name: "label",
        expected: "a label such as \"label=com.example.worker=alice\"",
        preset: Preset::Absent("see container"),
        sample: "\"label=com.example.worker=alice\"",
        describe: "A label that one container has: one that is made anew is then the same worker.",
    },
];

pub(in super::super) const QEMU: &[Field] = &[
    Field {
        name: "kernel",
        expected: "the path of a kernel",
        preset: Preset::Absent("boots from image"),
        sample: "\"/srv/vm/vmlinuz\"",
        describe: "A kernel that is loaded directly. At least one of kernel and image.",
    },
    Field {
        name: "initrd",
        expected: "the path of an initramfs",
        preset: Preset::Absent("none"),
        sample: "\"/srv/vm/initrd.img\"",
        describe: "The kernel's first file system.",
    },
    Field {
        name: "append",
        expected: "a kernel command line such as \"console=ttyS0\"",
        preset: Preset::Absent("none"),
        sample: "\"console=ttyS0\"",
        describe: "The kernel's command line.",
    },
    Field {
        name: "image",
        expected: "the path of a disk image",
        preset: Preset::Absent("no disk"),
        sample: "\"/srv/vm/disk.qcow2\"",
        describe: "A disk.",
    },
    Field {
        name: "memory",
        expected: "a size of at least 16MiB such as \"512MiB\"",
        preset: Preset::Is("\"256MiB\""),
        sample: "\"512MiB\"",
        describe: "Its memory.",
    },
    Field {
        name: "cpus",
        expected: "a whole number from 1 to 1024",
        preset: Preset::Is("1"),
        sample: "2",
        describe: "Its processors.",
    },
];

pub(in super::super) const EC2: &[Field] = &[
    Field {
        name: "instance_id",
        expected: "an instance id such as \"i-0123456789abcdef0\"",
        preset: Preset::Required,
        sample: "\"i-0123456789abcdef0\"",
        describe: "The instance.",
    },
    Field {
        name: "endpoint",
        expected: "a URL such as \"https://cml.example:443\"",
        preset: Preset::Absent("the instance's address"),
        sample: "\"https://cml.example:443\"",
        describe: "Where CML answers, for type cml.",
    },
    Field {
        name: "cml",
        expected: "keys such as cml.tls_fingerprint = \"sha256:…\"",
        preset: Preset::Absent("a verified certificate"),
        sample: "{ tls_verify = false }",
        describe: "How CML is reached, for type cml.",
    },
];

pub(in super::super) const CML: &[Field] = &[
    Field {
        name: "tls_fingerprint",
        expected: "\"sha256:\" and 64 hexadecimal digits",
        preset: Preset::Absent("none"),
        sample: "\"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
        describe: "The certificate that CML must show, for self-signed ones.",
    },
    Field {
        name: "tls_verify",
        expected: "true or false",
        preset: Preset::Is("true"),
        sample: "false",
        describe: "False accepts any certificate.",
    },
];

/// Which fields belong to which driver.
const BELONGS: [(DriverKind, &[Field]); 4] = [
    (DriverKind::Process, PROCESS),
    (DriverKind::Docker, DOCKER),
    (DriverKind::Qemu, QEMU),
    (DriverKind::Ec2, EC2),
];

/// Below this no kernel boots.
const LEAST_MEMORY: u64 = 16 << 20;
const DEFAULT_MEMORY: u64 = 256 << 20;

/// Reads what the worker's driver needs, and refuses what belongs to another.
pub(super) fn read(
    report: &mut Report<'_>,
    section: &Section<'_>,
    kind: Option<DriverKind>,
    selectors: &Selectors,
) -> Option<Driver> {
    // Whose driver is not known cannot be told what is missing.
    let Some(kind) = kind else {
        for field in BELONGS.iter().flat_map(|(_, fields)| fields.iter()) {
            section.node(field.name);
        }
        return None;
    };
    for (other, fields) in BELONGS.iter().filter(|(other, _)| *other != kind) {
        for field in *fields {
            if let Some(node) = section.node(field.name) {
                let fault = Fault::OtherDriver { belongs_to: other.code(), driver: kind.code() };
                report.add(&node.span(), field.name, fault);
            }
        }
    }
    match kind {
        DriverKind::Process => process(report, section),
        DriverKind::Docker => docker(report, section),
        DriverKind::Qemu => qemu(report, section),
        DriverKind::Ec2 => ec2(report, section, selectors),
        DriverKind::Sim => Some(Driver::Sim),
    }
}

fn process(report: &mut Report<'_>, section: &Section<'_>) -> Option<Driver> {
    let command = section.require(report, "command", read::command);
    let directory = section.read(report, "directory", read::path);
    Some(Driver::Process { command: command?, directory })
}

fn docker(report: &mut Report<'_>, section: &Section<'_>) -> Option<Driver> {
    let container = section.read(report, "container", read::text);
    let label = section.read(report, "label", |value| {
        super::super::driver::label(value).map_err(|_| Fault::expected(DOCKER[1].expected, describe(value)))
    });
    match (section.has("container"), section.has("label")) {
        (true, true) => {
            report.add(
                &section.span_of("label"),
                "label",
                Fault::rule("expected either container or label, found both"),
            );
            None
        }
        (false, false) => {
            section.missing(report, "container");
            None
        }
        _ => container
            .map(Container::Named)
            .or(label.map(Container::Labelled))
            .map(|container| Driver::Docker { container }),
    }
}

fn qemu(report: &mut Report<'_>, section: &Section<'_>) -> Option<Driver> {
    let boot = Boot {
        kernel: section.read(report, "kernel", read::path),
        initrd: section.read(report, "initrd", read::path),
        append: section.read(report, "append", read::text),
        image: section.read(report, "image", read::path),
    };
    for name in ["initrd", "append"] {
        if section.has(name) && !section.has("kernel") {
            report.add(&section.span_of(name), name, Fault::rule("needs kernel beside it"));
        }
    }
    let memory = section.read(report, "memory", |value| match read::size(value)? {
        bytes if bytes >= LEAST_MEMORY => Ok(bytes),
        _ => Err(Fault::expected(QEMU[4].expected, describe(value))),
    });
    let cpus = section.read(report, "cpus", read::count(1, 1_024));
    if !section.has("kernel") && !section.has("image") {
        section.missing(report, "kernel");
        return None;
    }
    Some(Driver::Qemu { boot, memory: memory.unwrap_or(DEFAULT_MEMORY), cpus: cpus.unwrap_or(1) })
}

fn ec2(report: &mut Report<'_>, section: &Section<'_>, selectors: &Selectors) -> Option<Driver> {
    let instance_id = section.require(report, "instance_id", instance_id);
    if !section.has("region") {
        section.missing(report, "region");
    }
    let endpoint = section.read(report, "endpoint", read::url);
    let tls = section.node("cml").map(|node| tls(report, node));
    let is_cml = selectors.kind.as_deref() == Some(TYPE_CML);
    for name in ["endpoint", "cml"] {
        if section.has(name) && !is_cml {
            report.add(&section.span_of(name), name, Fault::rule("needs type = \"cml\" beside it"));
        }
    }
    let cml = is_cml.then(|| CmlAccess { endpoint, tls: tls.unwrap_or_default() });
    Some(Driver::Ec2 { instance_id: instance_id?, cml })
}

fn instance_id(value: &DeValue<'_>) -> Result<String, Fault> {
    let digits = value.as_str().and_then(|text| text.strip_prefix("i-")).unwrap_or_default();
    // Eight digits are what old instances have.
    let is_one = matches!(digits.len(), 8 | 17) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_one { Ok(format!("i-{digits}")) } else { Err(Fault::expected(EC2[0].expected, describe(value))) }
}

fn tls(report: &mut Report<'_>, node: &Node<'_>) -> CmlTls {
    let Some(section) = Section::of(report, node, "of cml keys", &[CML]) else { return CmlTls::default() };
    let pinned = section.read(report, "tls_fingerprint", fingerprint);
    let verify = section.read(report, "tls_verify", read::flag);
    if section.has("tls_fingerprint") && verify == Some(false) {
        let rule = "expected either tls_fingerprint or tls_verify = false, found both";
        report.add(&section.span_of("tls_verify"), "cml.tls_verify", Fault::rule(rule));
    }
    section.finish(report);
    match (pinned, verify) {
        (Some(fingerprint), _) => CmlTls::Pinned(fingerprint),
        (None, Some(false)) => CmlTls::Unverified,
        (None, Some(true) | None) => CmlTls::Verified,
    }
}

/// With or without the colons that openssl puts between the bytes.
fn fingerprint(value: &DeValue<'_>) -> Result<String, Fault> {
    let digits = value.as_str().and_then(|text| text.strip_prefix("sha256:")).unwrap_or_default();
    let digits = digits.replace(':', "").to_ascii_lowercase();
    let is_one = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_one { Ok(digits) } else { Err(Fault::expected(CML[0].expected, describe(value))) }
}

impl Driver {
    pub const fn kind(&self) -> DriverKind {
        match self {
            Driver::Process { .. } => DriverKind::Process,
            Driver::Docker { .. } => DriverKind::Docker,
            Driver::Qemu { .. } => DriverKind::Qemu,
            Driver::Ec2 { .. } => DriverKind::Ec2,
            Driver::Sim => DriverKind::Sim,
        }
    }
}
