//! A table in memory.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use hames_tools::FsError;

use super::{Node, Nodes, Rows, RowsMut, TableError, TableFs};

/// Files that live as long as the value: for tests, and for agents that have no disk.
///
/// ```
/// use hames_tools::{Expect, FsProvider};
/// use hames_workspace::files::MemoryFs;
///
/// let fs = MemoryFs::default();
/// let path = fs.resolve("notes/today.txt")?;
/// fs.write(&path, b"hello\n", &Expect::Absent, &mut |_| Ok(()))?;
/// assert_eq!(fs.read(&path, 100)?, b"hello\n");
/// assert!(fs.resolve("../elsewhere").is_err());
/// # Ok::<(), hames_tools::FsError>(())
/// ```
pub type MemoryFs = TableFs<MemoryNodes>;

impl Default for MemoryFs {
    fn default() -> Self {
        Self::over(MemoryNodes::default())
    }
}

/// The rows of a [`MemoryFs`].
#[derive(Debug, Default)]
pub struct MemoryNodes {
    rows: RwLock<BTreeMap<String, Row>>,
}

#[derive(Clone, Debug)]
struct Row {
    content: Option<Vec<u8>>,
    mode: u32,
    modified_ns: u128,
}

impl Row {
    fn node(&self) -> Node {
        let size = self.content.as_ref().map_or(0, |content| content.len() as u64);
        Node { is_dir: self.content.is_none(), size, mode: self.mode, modified_ns: self.modified_ns }
    }
}

/// The rows, and what they were before this piece of work changed them.
struct Work<'t> {
    rows: &'t mut BTreeMap<String, Row>,
    before: Vec<(String, Option<Row>)>,
}

/// Keys of one folder stand together, but so does everything below them: what is deeper is skipped at one bound.
fn children(rows: &BTreeMap<String, Row>, path: &str) -> Vec<(String, Node)> {
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let mut found = Vec::new();
    let mut from = prefix.clone();
    while let Some((key, row)) = rows.range(from.clone()..).next().filter(|(key, _)| key.starts_with(&prefix)) {
        let name = &key[prefix.len()..];
        match name.split_once('/') {
            // `0` follows `/`: the first key behind all that is below this folder.
            Some((folder, _)) => from = format!("{prefix}{folder}0"),
            None => {
                found.push((name.to_owned(), row.node()));
                from = format!("{key}\0");
            }
        }
    }
    found
}

fn content(rows: &BTreeMap<String, Row>, path: &str) -> Vec<u8> {
    rows.get(path).and_then(|row| row.content.clone()).unwrap_or_default()
}

impl Rows for BTreeMap<String, Row> {
    fn node(&self, path: &str) -> Result<Option<Node>, TableError> {
        Ok(self.get(path).map(Row::node))
    }
    fn content(&self, path: &str) -> Result<Vec<u8>, TableError> {
        Ok(content(self, path))
    }
    fn children(&self, path: &str) -> Result<Vec<(String, Node)>, TableError> {
        Ok(children(self, path))
    }
}

impl Rows for Work<'_> {
    fn node(&self, path: &str) -> Result<Option<Node>, TableError> {
        self.rows.node(path)
    }
    fn content(&self, path: &str) -> Result<Vec<u8>, TableError> {
        Ok(content(self.rows, path))
    }
    fn children(&self, path: &str) -> Result<Vec<(String, Node)>, TableError> {
        Ok(children(self.rows, path))
    }
}

impl RowsMut for Work<'_> {
    fn put(&mut self, path: &str, content: Option<&[u8]>, mode: u32, modified_ns: u128) -> Result<(), TableError> {
        let row = Row { content: content.map(<[u8]>::to_vec), mode, modified_ns };
        let before = self.rows.insert(path.to_owned(), row);
        self.before.push((path.to_owned(), before));
        Ok(())
    }
    fn remove(&mut self, path: &str) -> Result<(), TableError> {
        let before = self.rows.remove(path);
        self.before.push((path.to_owned(), before));
        Ok(())
    }
}

impl Nodes for MemoryNodes {
    fn look(&self, work: &mut dyn FnMut(&dyn Rows) -> Result<(), FsError>) -> Result<(), FsError> {
        work(&*self.rows.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, work: &mut dyn FnMut(&mut dyn RowsMut) -> Result<(), FsError>) -> Result<(), FsError> {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let mut table = Work { rows: &mut rows, before: Vec::new() };
        let done = work(&mut table);
        if done.is_err() {
            for (path, before) in table.before.into_iter().rev() {
                match before {
                    Some(row) => table.rows.insert(path, row),
                    None => table.rows.remove(&path),
                };
            }
        }
        done
    }
}
