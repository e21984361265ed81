//! `drowse backup PATH`: a copy of the database, taken while Drowse runs.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use drowse_wire::client::Client;
use drowse_wire::v1::Backup;

use crate::connect::{Connect, after_help};
use crate::output;

/// Copy the database of a running Drowse into a file.
///
/// For SQLite; a PostgreSQL database is copied with its own tools, such as `pg_dump`. The file holds everything that
/// Drowse knows, hashes of tokens too, and is readable by you alone. To restore it, stop Drowse and put it in the
/// place of drowse.db.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse backup /backups/drowse.db
  drowse backup /backups/drowse.db --force        replace the last one"))]
pub(crate) struct Args {
    /// Where to.
    path: PathBuf,
    /// Replace a file that is there.
    #[arg(long)]
    force: bool,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    ensure!(args.force || !args.path.exists(), "{} exists; --force replaces it", args.path.display());
    let client = args.connect.client()?;
    // Beside it and renamed at the end: a copy that broke off never stands in the place of a good one.
    let mut name = args.path.file_name().context("expected the path of a file")?.to_owned();
    name.push(".part");
    let part = args.path.with_file_name(name);
    let size_bytes = match copy(&client, &part) {
        Ok(size) => size,
        Err(error) => {
            let _ = fs::remove_file(&part);
            return Err(error);
        }
    };
    fs::rename(&part, &args.path).with_context(|| format!("cannot write {}", args.path.display()))?;
    let backup = Backup { path: args.path.display().to_string(), size_bytes };
    if args.json {
        output::json(&backup)?;
    } else {
        output::talk(&format!("{} bytes written to {}\n", backup.size_bytes, backup.path));
    }
    Ok(ExitCode::SUCCESS)
}

fn copy(client: &Client, part: &Path) -> anyhow::Result<u64> {
    let cannot = || format!("cannot write {}", part.display());
    let mut file = create(part).with_context(cannot)?;
    let size = client.backup(&mut file)?;
    file.flush().and_then(|()| file.sync_all()).with_context(cannot)?;
    check(&mut file, size)?;
    Ok(size)
}

fn create(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The size that the database itself tells: page size and number of pages stand in its header.
fn check(file: &mut File, size: u64) -> anyhow::Result<()> {
    let mut header = [0; 100];
    file.seek(SeekFrom::Start(0))?;
    if file.read_exact(&mut header).is_err() || !header.starts_with(b"SQLite format 3\0") {
        bail!("what came is no SQLite database; nothing was written");
    }
    let number = |at: usize, length: usize| {
        header[at..at + length].iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
    };
    // 65536 does not fit into two bytes and is written as 1.
    let page = match number(16, 2) {
        1 => 65_536,
        page => page,
    };
    let told = page * number(28, 4);
    ensure!(told == size, "the copy has {size} bytes and should have {told}; nothing was written");
    Ok(())
}
