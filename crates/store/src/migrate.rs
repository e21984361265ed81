//! Bringing a database up to date.
//!
//! Migrations first expand (new tables, new columns that older programs do not mind) and contract only in a
//! later release, so that replicas of two versions can share a database. Each says in its first line which
//! version a program must know to use the database afterwards; a program that does not is refused.
//!
//! Each runs in one transaction, under a lock, and looks at the version only then: of two processes that
//! start at once, the second finds the work done.

use crate::error::StoreError;
use crate::meta::Epoch;
use crate::sql::{Connection, Mode};
use crate::tx::View;

/// What the first line of a migration begins with.
const MIN_COMPATIBLE: &str = "-- min_compatible: ";

/// Does what is missing.
pub(crate) fn bring_up(connection: &mut Connection, fresh_epoch: Epoch) -> Result<(), StoreError> {
    bring_up_with(connection, connection.dialect().migrations, fresh_epoch)
}

fn bring_up_with(
    connection: &mut Connection,
    migrations: &[&str],
    fresh_epoch: Epoch,
) -> Result<(), StoreError> {
    loop {
        connection.begin(Mode::Write)?;
        let view = View::new(connection);
        if let Some(lock) = view.dialect().lock_migration {
            view.query(lock, &[], |_| Ok(()))?;
        }
        connection.batch("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")?;
        let done = view.meta_number("schema")?;
        check_compatible(done, view.meta_number("min_compatible")?, migrations.len())?;
        let Some(migration) = migrations.get(done as usize) else {
            note_copy(&view, fresh_epoch)?;
            return view.end();
        };
        connection.batch(migration)?;
        view.set_meta("schema", &(done + 1).to_string())?;
        view.set_meta("min_compatible", &needs(migration).to_string())?;
        if done == 0 {
            view.renew_epoch(fresh_epoch)?;
            note_identity(&view)?;
        }
        view.end()?;
    }
}

/// An older program may use a newer database unless that has been contracted.
fn check_compatible(database: u32, needs: u32, migrations: usize) -> Result<(), StoreError> {
    let program = u32::try_from(migrations).unwrap_or(u32::MAX);
    if needs > program { Err(StoreError::TooNew { database, needs, program }) } else { Ok(()) }
}

fn needs(migration: &str) -> u32 {
    let first = migration.lines().next().and_then(|line| line.strip_prefix(MIN_COMPATIBLE));
    first
        .and_then(|number| number.trim().parse().ok())
        .expect("a test holds every migration to its first line")
}

/// In a copy of a database the journal goes on differently from the original.
fn note_copy(view: &View<'_>, fresh_epoch: Epoch) -> Result<(), StoreError> {
    let is_copy = view.meta("is_copy")?.is_some() || view.meta("identity")? != identity(view)?;
    if is_copy {
        view.renew_epoch(fresh_epoch)?;
        view.execute("DELETE FROM meta WHERE key = $1", &["is_copy".into()])?;
        note_identity(view)?;
    }
    Ok(())
}

fn identity(view: &View<'_>) -> Result<Option<String>, StoreError> {
    match view.dialect().identity {
        Some(statement) => view.query_one(statement, &[], |row| Ok(row.text(0)?.to_owned())),
        None => Ok(None),
    }
}

fn note_identity(view: &View<'_>) -> Result<(), StoreError> {
    match identity(view)? {
        Some(identity) => view.set_meta("identity", &identity),
        None => Ok(()),
    }
}

/// Marks a fresh copy, outside of any transaction.
pub(crate) fn mark_as_copy(connection: &Connection) -> Result<(), StoreError> {
    connection.batch("INSERT OR REPLACE INTO meta (key, value) VALUES ('is_copy', 'yes')")
}

#[cfg(test)]
mod tests;
