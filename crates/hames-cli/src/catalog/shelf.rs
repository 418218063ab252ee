//! Model lists and the public catalog as files in the cache folder: written whole or not at all, and whatever cannot be
//! read back is as good as not there. Nothing in them is a secret, and losing them costs one request.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hames_model::ModelList;
use hames_model::catalog::{Catalog, ListedModel, Section};

use crate::config::{Provider, shown_url};
use crate::home::{PUBLIC_CATALOG, create_private};

/// Bytes of a kept file that are read; a larger one is none of ours.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;
/// The one section of a kept list.
const LIST: &str = "models";

/// A catalog that was kept, and when its content was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Unix milliseconds.
    pub(crate) at_ms: u64,
    pub(crate) catalog: Catalog<'static>,
}

impl Kept {
    /// The models of a kept list.
    pub(crate) fn models(&self) -> Option<Section<'_>> {
        self.catalog.section(LIST)
    }
}

/// The folder the files are in, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    folder: Option<PathBuf>,
    /// Read at most once: it is the one large file.
    public: OnceLock<Option<Kept>>,
    no_public: bool,
}

impl Shelf {
    /// The files of a folder, which need not exist.
    pub(crate) fn at(folder: PathBuf) -> Shelf {
        Shelf { folder: Some(folder), ..Shelf::default() }
    }

    /// No files.
    pub(crate) fn none() -> Shelf {
        Shelf::default()
    }

    /// The same without the public catalog, for who wants none of it.
    pub(crate) fn without_public(mut self) -> Shelf {
        self.no_public = true;
        self
    }

    /// Whether there is a place to keep anything.
    pub(crate) fn keeps(&self) -> bool {
        self.folder.is_some()
    }

    /// What the provider listed last, if that was at the same address.
    pub(crate) fn list(&self, provider: &Provider) -> Option<Kept> {
        let catalog = read(&self.list_file(provider)?)?;
        let (at_ms, address) = catalog.stamp().split_once(' ')?;
        let at_ms = at_ms.parse().ok().filter(|_| address == shown_url(&provider.base_url))?;
        Some(Kept { at_ms, catalog })
    }

    /// Keeps what a provider lists. A window that the server only tells while a model is loaded is kept from before.
    pub(crate) fn keep_list(&self, provider: &Provider, list: &ModelList, now_ms: u64) {
        let Some(file) = self.list_file(provider) else { return };
        let before = self.list(provider);
        let before = before.as_ref().and_then(Kept::models);
        let models: Vec<ListedModel> = list
            .models
            .iter()
            .map(|model| {
                let mut model = model.clone();
                if model.facts.context_window.is_none() && model.facts.trained_window.is_some() {
                    let known =
                        before.and_then(|section| section.find(&model.id)).and_then(|facts| facts.context_window);
                    model.facts.context_window = known.filter(|known| Some(*known) <= model.facts.trained_window);
                }
                model
            })
            .collect();
        let stamp = format!("{now_ms} {}", shown_url(&provider.base_url));
        keep(&file, Catalog::write(&stamp, [(LIST, models.as_slice())]).text());
    }

    /// Forgets what a provider listed.
    pub(crate) fn forget_list(&self, provider: &Provider) {
        if let Some(file) = self.list_file(provider) {
            // One that is not there is forgotten already.
            let _ = std::fs::remove_file(file);
        }
    }

    /// The public catalog, if it was fetched and is wanted.
    pub(crate) fn public(&self) -> Option<&Kept> {
        let read = || {
            let catalog = read(&self.public_file()?)?;
            Some(Kept { at_ms: catalog.stamp().parse().ok()?, catalog })
        };
        self.public.get_or_init(|| if self.no_public { None } else { read() }).as_ref()
    }

    /// Keeps the public catalog, which is stamped with the time it was asked for.
    pub(crate) fn keep_public(&self, catalog: &Catalog<'_>) {
        if let Some(file) = self.public_file() {
            keep(&file, catalog.text());
        }
    }

    fn list_file(&self, provider: &Provider) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("lists").join(format!("{}.txt", file_name(&provider.name))))
    }

    fn public_file(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(PUBLIC_CATALOG))
    }
}

fn read(file: &Path) -> Option<Catalog<'static>> {
    let meta = std::fs::metadata(file).ok()?;
    if !meta.is_file() || meta.len() > MAX_FILE_BYTES {
        return None;
    }
    Catalog::of_text(String::from_utf8(std::fs::read(file).ok()?).ok()?)
}

/// Writes a file whole. That it cannot be kept is only worth a line in the log: it can be asked for again.
fn keep(file: &Path, text: &str) {
    let kept = || {
        let folder = file.parent().unwrap_or(Path::new("."));
        create_private(folder)?;
        let mut staged = tempfile::NamedTempFile::new_in(folder)?;
        staged.write_all(text.as_bytes())?;
        staged.persist(file).map_err(|e| e.error)?;
        Ok::<(), std::io::Error>(())
    };
    if let Err(error) = kept() {
        tracing::debug!(target: "hames::catalog", file = %file.display(), %error, "not kept");
    }
}

/// A provider's name as that of a file: whatever is no letter, digit, hyphen or underscore is written as its number.
fn file_name(name: &str) -> String {
    name.chars()
        .take(80)
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') => c.to_string(),
            c => format!("%{:x}", u32::from(c)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use hames_model::catalog::Facts;

    use super::*;

    fn list() -> ModelList {
        let facts = Facts { context_window: Some(5), ..Facts::default() };
        ModelList { models: vec![ListedModel { id: "m".into(), facts }], ..ModelList::default() }
    }

    #[test]
    fn a_list_is_kept_for_its_provider_and_address() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(dir.path().join("cache"));
        let provider = Provider::at("p.x", "http://h/v1?key=secret");
        assert!(shelf.list(&provider).is_none());
        shelf.keep_list(&provider, &list(), 17);
        let kept = shelf.list(&provider).unwrap();
        assert_eq!(kept.at_ms, 17);
        assert_eq!(kept.models().unwrap().find("m").unwrap().context_window, Some(5));
        assert!(!kept.catalog.text().contains("secret"));
        assert!(shelf.list(&Provider::at("p.x", "http://other/v1")).is_none());
        assert!(shelf.list(&Provider::at("px", "http://h/v1")).is_none());
        shelf.forget_list(&provider);
        assert!(shelf.list(&provider).is_none());
        Shelf::none().keep_list(&provider, &list(), 1);
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(dir.path().into());
        let provider = Provider::at("p", "http://h");
        shelf.keep_list(&provider, &list(), 17);
        let file = dir.path().join("lists/p.txt");
        let whole = std::fs::read(&file).unwrap();
        for bytes in [
            whole[..whole.len() - 2].to_vec(),
            b"\xff\xfe".to_vec(),
            Vec::new(),
            b"hames-catalog 1 x http://h\nend\n".to_vec(),
            b"hames-catalog 1 \nend\n".to_vec(),
        ] {
            std::fs::write(&file, &bytes).unwrap();
            assert!(shelf.list(&provider).is_none(), "{}", String::from_utf8_lossy(&bytes));
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(shelf.list(&provider).is_none());
        shelf.keep_list(&provider, &list(), 17);
        std::fs::write(dir.path().join("models-dev.txt"), "junk").unwrap();
        assert!(shelf.public().is_none());
    }

    #[test]
    fn the_public_catalog_is_not_used_where_nobody_wants_it() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(dir.path().into());
        shelf.keep_public(&Catalog::write("5", [("openai", &list().models[..])]));
        assert_eq!(shelf.public().unwrap().at_ms, 5);
        assert!(Shelf::at(dir.path().into()).without_public().public().is_none());
    }

    #[test]
    fn no_name_of_a_provider_leads_out_of_the_folder() {
        for (name, file) in
            [("openai", "openai"), ("..", "%2e%2e"), ("a.b", "a%2eb"), ("ü", "%fc"), ("a%2eb", "a%252eb")]
        {
            assert_eq!(file_name(name), file);
        }
    }
}
