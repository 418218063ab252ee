//! `hames db`: what the database of sessions takes, and making it smaller.

use hames_client::ClientError;
use hames_protocol::api::Vacuumed;
use hames_store::{FreeSpace, Store, VacuumThresholds};
use serde_json::json;

use crate::cli::DbCommand;
use crate::config::FileConfig;
use crate::engine::with_store;
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::output::{Out, say};
use crate::server::finder;

pub(crate) fn run(what: DbCommand, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    // A file that cannot be read is for the commands that need it.
    let thresholds = FileConfig::load(&home.config_file()).map(|config| config.vacuum).unwrap_or_default();
    with_store(&home, |store| {
        let mut out = Out::new();
        match what {
            DbCommand::Stats { json } => stats(store, thresholds, json, &mut out)?,
            DbCommand::Vacuum { json } => vacuum(&home, store, json, &mut out)?,
        }
        out.finish()?;
        Ok(exit::COMPLETE)
    })
}

fn stats(store: &Store, thresholds: VacuumThresholds, as_json: bool, out: &mut Out) -> Result<(), Stop> {
    let stats = store.stats()?;
    let FreeSpace { bytes, free_bytes } = stats.space;
    let suggested = thresholds.suggest(stats.space);
    if as_json {
        return out.json(&json!({
            "bytes": bytes, "free_bytes": free_bytes, "wal_bytes": stats.wal_bytes,
            "sessions": stats.sessions, "events": stats.events,
            "row_blobs": stats.row_blobs, "row_blob_bytes": stats.row_blob_bytes,
            "file_blobs": stats.file_blobs, "file_blob_bytes": stats.file_blob_bytes,
            "search_bytes": stats.search_bytes, "suggest_vacuum": suggested,
        }));
    }
    let percent = (free_bytes.saturating_mul(100)).checked_div(bytes).unwrap_or(0);
    out.line(format!("database      {}, {} of it free ({percent} %)", size(bytes), size(free_bytes)))?;
    out.line(format!("write-ahead   {}", size(stats.wal_bytes)))?;
    out.line(format!("search index  {}", size(stats.search_bytes)))?;
    out.line(format!("sessions      {} with {} events", stats.sessions, stats.events))?;
    out.line(format!(
        "outputs       {} in the database ({}), {} in files ({})",
        stats.row_blobs,
        size(stats.row_blob_bytes),
        stats.file_blobs,
        size(stats.file_blob_bytes)
    ))?;
    if suggested {
        out.line("`hames db vacuum` would make it smaller")?;
    }
    Ok(())
}

fn vacuum(home: &Home, store: &Store, as_json: bool, out: &mut Out) -> Result<(), Stop> {
    // A server keeps sessions open in which nothing goes on: only it knows which.
    let server = super::runtime()?.block_on(async {
        match finder(home).connect().await {
            Ok(found) => Ok(Some(found.client.vacuum().await?)),
            Err(ClientError::Unreachable { .. }) => Ok(None),
            Err(error) => Err(Stop::from(error)),
        }
    });
    let done = match server? {
        Some(done) => done,
        None => {
            let hames_store::Vacuumed { before_bytes, after_bytes, blobs_removed, duration_ms } = store.vacuum(&[])?;
            Vacuumed { before_bytes, after_bytes, blobs_removed, duration_ms }
        }
    };
    if as_json {
        return out.json(&json!({
            "before_bytes": done.before_bytes, "after_bytes": done.after_bytes,
            "blobs_removed": done.blobs_removed, "duration_ms": done.duration_ms,
        }));
    }
    out.line(format!("{} before, {} after", size(done.before_bytes), size(done.after_bytes)))
}

/// Says that a vacuum would be worth its time, where it would. After what makes the database emptier.
pub(super) fn suggest(store: &Store, env: &Env) -> Result<(), Stop> {
    let home = Home::find(env)?;
    let thresholds = FileConfig::load(&home.config_file()).map(|config| config.vacuum).unwrap_or_default();
    let space = store.free_space()?;
    if thresholds.suggest(space) {
        say(&format!(
            "hames: {} of the {} of the session database are free; `hames db vacuum` gives them back",
            size(space.free_bytes),
            size(space.bytes)
        ));
    }
    Ok(())
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut tenths = bytes * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KB"),
            (1536, "1.5 KB"),
            (134_217_728, "128.0 MB"),
            (1 << 30, "1.0 GB"),
            (1 << 50, "1024.0 TB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }
}
