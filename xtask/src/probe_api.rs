//! `cargo xtask probe-api [EXAMPLES]`: schemathesis against the API of a running `drowse up`.
//!
//! It reads the `OpenAPI` document from the server itself and sends what the document allows and what it forbids,
//! as an administrator, to a fleet that nobody minds. A 5xx, an answer that is not in the document or that
//! breaks its schema fails the run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::workspace::{Workspace, must};

/// The version that is used: a newer one may check more, and a red run must mean a red change.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// Requests of each kind for each operation in the checks of every change.
const EXAMPLES: u32 = 15;

/// A red run can be run again.
const SEED: &str = "1";

/// What the document cannot say is left out: that a request which fits its schema may still be refused, because
/// a policy says so or two fields exclude each other. It gets a 4xx that the other checks look at.
const LEFT_OUT: &str = "positive_data_acceptance";

/// It never ends, so nobody could tell its answer; the API's own tests read it.
const ENDLESS: &str = "/api/v1/events/stream";

/// How often it is looked whether the server is up, and how many times.
const LOOK: (Duration, u32) = (Duration::from_millis(50), 600);

pub(crate) fn run(workspace: &Workspace, examples: Option<u32>) -> anyhow::Result<()> {
    let target = workspace.target_dir()?;
    let schemathesis = install(&target.join("tools"))?;
    must(&mut workspace.cargo(["build", "--package", "drowse"]))?;
    let folder = target.join("probe-api");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot clear the folder of an earlier run")?;
    }
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("drowse.toml"), CONFIG)?;
    let server = Server::start(&target.join("debug/drowse"), &folder)?;
    let probed = must(
        Command::new(schemathesis)
            .arg("run")
            .arg(format!("{}/openapi.json", server.url))
            .args(["--header", &format!("Authorization: Bearer {}", server.token)])
            .args(["--checks", "all", "--exclude-checks", LEFT_OUT, "--exclude-path", ENDLESS])
            .args(["--max-examples", &examples.unwrap_or(EXAMPLES).to_string(), "--seed", SEED])
            .args(["--request-timeout", "10", "--continue-on-failure", "--warnings", "off", "--no-color"])
            .current_dir(&folder),
    );
    server.end()?;
    probed
}

/// Some that sleep, some that do not, one that dies at once.
const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"

[policy]
idle_timeout = "5s"

[[worker]]
id = "web"
driver = "process"
command = ["sleep", "100000"]
region = "us-east-1"

[[worker]]
id = "build"
driver = "process"
command = ["sleep", "100000"]
region = "us-east-1"
policy.auto_pause = false

[[worker]]
id = "broken"
driver = "process"
command = ["false"]
"#;

/// In a folder of its own, below the target folder: nothing of the machine is changed.
fn install(tools: &Path) -> anyhow::Result<PathBuf> {
    let home = tools.join("schemathesis");
    let program = home.join("bin/schemathesis");
    let mark = home.join("version");
    if program.exists() && fs::read_to_string(&mark).is_ok_and(|version| version == SCHEMATHESIS) {
        return Ok(program);
    }
    println!("{SCHEMATHESIS} is missing (it probes the API); installing it below the target folder");
    fs::create_dir_all(tools)?;
    let how = "install Debian's python3-venv, then try again";
    must(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home)).context(how)?;
    must(
        Command::new(home.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .arg(SCHEMATHESIS),
    )?;
    fs::write(mark, SCHEMATHESIS)?;
    Ok(program)
}

struct Server {
    process: Child,
    url: String,
    token: String,
    log: PathBuf,
}

impl Server {
    fn start(binary: &Path, folder: &Path) -> anyhow::Result<Self> {
        let data = folder.join("data");
        let log = folder.join("drowse.log");
        let mut process = Command::new(binary)
            .args(["up", "--config", "drowse.toml", "--data", "data"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .context("cannot start drowse")?;
        for _ in 0..LOOK.1 {
            let read = |name: &str| fs::read_to_string(data.join(name)).map(|text| text.trim().to_owned());
            if let (Ok(url), Ok(token)) = (read("address"), read("admin-token")) {
                return Ok(Self { process, url, token, log });
            }
            if process.try_wait()?.is_some() {
                break;
            }
            std::thread::park_timeout(LOOK.0);
        }
        // Gone already, or not worth waiting for.
        let _ = process.kill();
        bail!("drowse did not come up:\n{}", fs::read_to_string(&log).unwrap_or_default());
    }

    /// It must still be there, and end when it is asked to.
    fn end(mut self) -> anyhow::Result<()> {
        let log = || fs::read_to_string(&self.log).unwrap_or_default();
        if let Some(status) = self.process.try_wait()? {
            bail!("drowse ended while it was probed ({status}):\n{}", log());
        }
        must(Command::new("kill").arg(self.process.id().to_string()))?;
        let status = self.process.wait()?;
        if !status.success() {
            bail!("drowse did not end well ({status}):\n{}", log());
        }
        Ok(())
    }
}
