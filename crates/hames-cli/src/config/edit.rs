//! Changes to the configuration file that leave everything else in it as it is: comments, order, blank lines, unknown
//! keys, line ends, its mode.
//!
//! A change is made in the syntax tree and written whole: beside the file, then renamed over it. It is refused where the
//! file is no configuration before or after, and where somebody else changed it meanwhile. What the result means is
//! checked by the reader itself, so that no command can write what the next one would not read.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

use super::file::{DIALECT, FileConfig, not_json};
use crate::exit::Stop;
use crate::home::create_private;

/// The mode of a file that is made here: it may hold keys.
const NEW_MODE: u32 = 0o600;
const BOM: char = '\u{feff}';

/// The file under change.
pub(crate) struct Edit {
    path: PathBuf,
    root: CstRootNode,
}

/// Reads the file at `path`, lets `change` change it, and writes it. A file that does not exist is made.
pub(crate) fn edit<T>(path: &Path, change: impl FnOnce(&Edit) -> Result<T, Stop>) -> Result<T, Stop> {
    let cannot = |what: &str, e: std::io::Error| {
        Stop::configuration(format!("{}: cannot be {what}: {e}; mend its permissions", path.display()))
    };
    // Behind a link is the file that is meant; the link stays.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().unwrap_or(Path::new("/"));
    create_private(folder).map_err(|e| cannot("made", e))?;
    // Two commands of ours change it one after the other. A file system without locks goes without.
    let locked = File::open(folder).map_err(|e| cannot("locked", e))?;
    let _ = locked.lock();
    // Whatever is wrong with it is said by the reader.
    let before = FileConfig::load(path)?;
    let bytes = if before.exists { std::fs::read(&target).map_err(|e| cannot("read", e))? } else { Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let bare = text.strip_prefix(BOM).unwrap_or(&text);
    let root = CstRootNode::parse(bare, &DIALECT).map_err(|e| not_json(path, &e))?;
    let edit = Edit { path: path.to_owned(), root };
    let out = change(&edit)?;
    let mut changed = edit.root.to_string();
    if !changed.ends_with('\n') {
        changed.push_str(if bare.contains("\r\n") { "\r\n" } else { "\n" });
    }
    if changed == bare {
        return Ok(out);
    }
    FileConfig::parse(path, &changed)?;
    if text.starts_with(BOM) {
        changed.insert(0, BOM);
    }
    let mode = std::fs::metadata(&target).map_or(NEW_MODE, |meta| meta.permissions().mode() & 0o7777);
    let write = || {
        let mut staged = tempfile::NamedTempFile::new_in(folder)?;
        staged.write_all(changed.as_bytes())?;
        staged.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
        staged.as_file().sync_all()?;
        Ok(staged)
    };
    let staged = write().map_err(|e| cannot("written", e))?;
    let now = std::fs::read(&target).or_else(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => Err(e),
    });
    if now.map_err(|e| cannot("read", e))? != bytes {
        return Err(Stop::configuration(format!(
            "{} was changed by somebody else meanwhile; nothing was written, run the command again",
            path.display()
        )));
    }
    staged.persist(&target).map_err(|e| cannot("written", e.error))?;
    // The name is on disk too; where a folder cannot be synced, the next sync of the system does it.
    let _ = locked.sync_all();
    Ok(out)
}

/// What the file at `path` would say after a change; nothing is written.
pub(crate) fn tried(path: &Path, change: impl FnOnce(&Edit) -> Result<(), Stop>) -> Result<FileConfig, Stop> {
    FileConfig::load(path)?;
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(Stop::configuration(format!("{}: cannot be read: {e}", path.display()))),
    };
    let root = CstRootNode::parse(text.strip_prefix(BOM).unwrap_or(&text), &DIALECT).map_err(|e| not_json(path, &e))?;
    let edit = Edit { path: path.to_owned(), root };
    change(&edit)?;
    FileConfig::parse(path, &edit.root.to_string())
}

/// The file as JSON; an empty object where it says nothing.
pub(crate) fn read(path: &Path) -> Result<Value, Stop> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Value::Object(serde_json::Map::new())),
        Err(e) => return Err(Stop::configuration(format!("{}: cannot be read: {e}", path.display()))),
    };
    value_of(path, text.strip_prefix(BOM).unwrap_or(&text))
}

/// The text of a configuration as JSON.
pub(crate) fn value_of(path: &Path, text: &str) -> Result<Value, Stop> {
    let root = CstRootNode::parse(text, &DIALECT).map_err(|e| not_json(path, &e))?;
    Ok(root.to_serde_value().unwrap_or_else(|| Value::Object(serde_json::Map::new())))
}

impl Edit {
    /// Sets members of a provider, making it where there is none; `None` removes a member.
    pub(crate) fn set_provider(&self, name: &str, members: &[(&str, Option<Value>)]) -> Result<(), Stop> {
        let provider = self.object_in(&self.providers()?, name)?;
        for (key, value) in members {
            self.set(&provider, key, value.clone())?;
        }
        Ok(())
    }

    /// Makes a provider what `value` says: members that differ are set, those it does not have are removed.
    pub(crate) fn put_provider(&self, name: &str, value: &Value) -> Result<(), Stop> {
        let none = serde_json::Map::new();
        let new = value.as_object().unwrap_or(&none);
        let before = self.provider(name)?;
        let gone = before.iter().filter_map(Value::as_object).flat_map(|old| old.keys());
        let gone = gone.filter(|key| !new.contains_key(*key)).map(|key| (key.as_str(), None));
        let set = new.iter().map(|(key, value)| (key.as_str(), Some(value.clone())));
        self.set_provider(name, &gone.chain(set).collect::<Vec<_>>())
    }

    /// Removes a provider; `false` where there is none.
    pub(crate) fn remove_provider(&self, name: &str) -> Result<bool, Stop> {
        let providers = self.providers()?;
        let found = self.member(&providers, name)?.is_some();
        self.set(&providers, name, None)?;
        Ok(found)
    }

    /// Sets the default model, or removes it.
    pub(crate) fn set_model(&self, model: Option<&str>) -> Result<(), Stop> {
        let root = self.root()?;
        match (model, root.get("model")) {
            // It is looked for at the top.
            (Some(model), None) => drop(root.insert(0, "model", CstInputValue::String(model.into()))),
            (model, _) => self.set(&root, "model", model.map(Value::from))?,
        }
        Ok(())
    }

    /// The value of a provider as JSON.
    pub(crate) fn provider(&self, name: &str) -> Result<Option<Value>, Stop> {
        let member = self.member(&self.providers()?, name)?;
        Ok(member.and_then(|member| member.value()).and_then(|value| value.to_serde_value()))
    }

    fn root(&self) -> Result<CstObject, Stop> {
        self.root.object_value_or_create().ok_or_else(|| self.refused("the file should be an object"))
    }

    fn providers(&self) -> Result<CstObject, Stop> {
        self.object_in(&self.root()?, "providers")
    }

    fn object_in(&self, parent: &CstObject, name: &str) -> Result<CstObject, Stop> {
        self.member(parent, name)?;
        parent.object_value_or_create(name).ok_or_else(|| self.refused(&format!("\"{name}\" should be an object")))
    }

    fn set(&self, object: &CstObject, key: &str, value: Option<Value>) -> Result<(), Stop> {
        match (self.member(object, key)?, value) {
            (Some(member), Some(value)) => {
                // What is there already keeps how it is written.
                if member.value().and_then(|value| value.to_serde_value()).as_ref() != Some(&value) {
                    member.set_value(input(value));
                }
            }
            (Some(member), None) => member.remove(),
            (None, Some(value)) => {
                object.ensure_multiline();
                object.append(key, input(value));
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// The member of that name. One that is there twice is nobody's to choose from.
    fn member(&self, object: &CstObject, name: &str) -> Result<Option<jsonc_parser::cst::CstObjectProp>, Stop> {
        let mut found = object.properties().into_iter().filter(|p| p.decoded_name().as_deref() == Some(name));
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(_) => Err(self.refused(&format!("\"{name}\" is there twice; remove one of them"))),
        }
    }

    fn refused(&self, why: &str) -> Stop {
        Stop::configuration(format!("{}: {why}", self.path.display()))
    }
}

fn input(value: Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text),
        Value::Array(values) => CstInputValue::Array(values.into_iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.into_iter().map(|(key, value)| (key, input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn in_file(text: Option<&str>, change: impl FnOnce(&Edit) -> Result<(), Stop>) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.jsonc");
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        match edit(&path, change) {
            Ok(()) => Ok(std::fs::read_to_string(&path).unwrap_or_default()),
            Err(Stop::Failed(failure)) => Err(failure.message),
            Err(Stop::OutputClosed) => unreachable!("nothing is printed"),
        }
    }

    const FILE: &str = r#"// my file
{
  "model": "a/m", // the good one
  /* unknown, and mine */ "future": [1,2 , 3],

  "providers": {
    // at work
    "a": {
      "base_url": "http://a/v1",   // internal
      "odd":true,
    },
    "b": { "base_url": "http://b" }
  }
}
"#;

    type Change = Box<dyn FnOnce(&Edit) -> Result<(), Stop>>;

    #[test]
    fn only_what_is_changed_changes() {
        let url = |url: &str| [("base_url", Some(json!(url)))];
        let cases: [(&str, Change, String); 7] = [
            (FILE, Box::new(|_| Ok(())), FILE.into()),
            (FILE, Box::new(|e| e.set_model(Some("b/x"))), FILE.replace("a/m", "b/x")),
            (
                FILE,
                Box::new(move |e| e.set_provider("a", &url("http://c"))),
                FILE.replace("http://a/v1\",   //", "http://c\",   //"),
            ),
            (FILE, Box::new(move |e| e.set_provider("b", &url("http://b"))), FILE.into()),
            (
                FILE,
                Box::new(|e| e.set_provider("a", &[("api_key_env", Some(json!("K")))])),
                FILE.replace("\"odd\":true,\n", "\"odd\":true,\n      \"api_key_env\": \"K\",\n"),
            ),
            (
                FILE,
                Box::new(|e| e.set_provider("a", &[("odd", None), ("gone", None)])),
                FILE.replace("// internal\n      \"odd\":true,\n", "// internal\n"),
            ),
            (
                FILE,
                Box::new(|e| e.remove_provider("b").map(|found| assert!(found))),
                FILE.replace(",\n    \"b\": { \"base_url\": \"http://b\" }", ""),
            ),
        ];
        for (text, change, expected) in cases {
            assert_eq!(in_file(Some(text), change), Ok(expected));
        }
    }

    #[test]
    fn a_file_is_made_where_there_is_none_and_nobody_else_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/config.jsonc");
        let add = |e: &Edit| {
            e.set_provider("p", &[("base_url", Some(json!("http://p/v1"))), ("api_key", Some(json!("sk")))])?;
            e.set_model(Some("p/m"))
        };
        edit(&path, add).unwrap();
        let expected = "{\n  \"model\": \"p/m\",\n  \"providers\": {\n    \"p\": {\n      \"base_url\": \"http://p/v1\",\n      \"api_key\": \"sk\"\n    }\n  }\n}\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for text in ["", "  \n", "// nothing\n", "{}", "\u{feff}{}\r\n"] {
            let made = in_file(Some(text), add).unwrap();
            let config = FileConfig::parse(&path, &made).unwrap();
            assert_eq!((config.providers.len(), config.warnings.len()), (1, 0), "{text:?} {made}");
            assert_eq!(made.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
            assert!(!text.starts_with("//") || made.starts_with("// nothing\n"), "{made}");
        }
    }

    #[test]
    fn mode_link_and_line_ends_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real.jsonc"), dir.path().join("config.jsonc"));
        let text = FILE.replace('\n', "\r\n");
        std::fs::write(&real, &text).unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        edit(&link, |e| e.set_provider("a", &[("max_tokens", Some(json!(5)))])).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        let changed = std::fs::read_to_string(&real).unwrap();
        assert_eq!(changed, text.replace("\"odd\":true,\r\n", "\"odd\":true,\r\n      \"max_tokens\": 5,\r\n"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_is_no_configuration_before_or_after_is_refused_and_left_alone() {
        let set = |e: &Edit| e.set_provider("a", &[("max_tokens", Some(json!(5)))]);
        for (text, says) in [
            ("{\n\"model\" \"a/b\"}", ":2: this is not JSON"),
            ("{\"providers\": 5}", ":1: providers should be an object"),
            ("{\"providers\": {\"a\": {\"base_url\": false}}}", ":1: providers.a.base_url"),
            ("[]", "should be an object"),
            ("{\"providers\": {\"a\": {}}, \"providers\": {}}", "\"providers\" is there twice"),
            ("{\"providers\": {\"a\": {}, \"a\": {}}}", "\"a\" is there twice"),
        ] {
            let message = in_file(Some(text), set).expect_err(text);
            assert!(message.contains(says), "{message}");
        }
        for (key, value) in [("base_url", json!("no url")), ("thinking", json!("deep")), ("max_tokens", json!(0))] {
            let message = in_file(Some(FILE), |e| e.set_provider("a", &[(key, Some(value))])).expect_err(key);
            assert!(message.contains(&format!("providers.a.{key} should be")), "{message}");
        }
        let message = in_file(Some(FILE), |e| e.set_provider("x y", &[])).expect_err("name");
        assert!(message.contains("cannot be the name of a provider"), "{message}");
    }

    #[test]
    fn a_change_by_somebody_else_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.jsonc");
        std::fs::write(&path, FILE).unwrap();
        let other = FILE.replace("a/m", "a/other");
        let change = |e: &Edit| {
            std::fs::write(&path, &other).unwrap();
            e.set_model(Some("b/x"))
        };
        let Err(Stop::Failed(failure)) = edit(&path, change) else { panic!("written over") };
        assert!(failure.message.contains("changed by somebody else"), "{}", failure.message);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    /// A file of many shapes, with a provider of that name or without.
    fn file(seed: &[u8]) -> String {
        let pick = |at: usize, of: &[&'static str]| of[usize::from(seed[at % seed.len()]) % of.len()];
        let newline = pick(0, &["\n", "\r\n", ""]);
        let gap = if newline.is_empty() {
            pick(1, &["", " ", "/* c */"])
        } else {
            pick(1, &["  ", "\t", "  // c\n  ", "  /* ü */ "])
        };
        let comma = pick(2, &["", ","]);
        let providers = pick(
            3,
            &[
                "",
                "\"a\": {}",
                "\"a\": {\"base_url\": \"http://a\"}",
                "\"b\": {\"x\":1}, \"a\": {\"odd\": [1 ,2]}",
                "\"b\":{}",
            ],
        );
        let providers = if providers.is_empty() { String::new() } else { format!("{providers}{comma}") };
        match pick(4, &["all", "none", "model"]) {
            "none" => format!("{}{{{newline}}}", pick(5, &["", "// top\n"])),
            "model" => format!("{{{newline}{gap}\"model\": \"a/m\"{comma}{newline}}}"),
            _ => format!(
                "{{{newline}{gap}\"future\": {{\"k\": null}},{newline}{gap}\"providers\": {{{gap}{providers}}}{comma}{newline}}}"
            ),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)))]

        #[test]
        fn whatever_the_file_looks_like_the_change_is_made_and_nothing_else(seed in proptest::collection::vec(any::<u8>(), 6)) {
            let text = file(&seed);
            let value = |text: &str| CstRootNode::parse(text, &DIALECT).unwrap().to_serde_value().unwrap_or(json!({}));
            let before = value(&text);
            let changed = in_file(Some(&text), |e| {
                e.set_provider("a", &[("base_url", Some(json!("http://new/ü\"\\"))), ("timeouts", Some(json!({"idle_s": 5})))])?;
                e.set_model(Some("a/x"))
            });
            let mut expected = before.clone();
            expected["model"] = json!("a/x");
            expected["providers"]["a"]["base_url"] = json!("http://new/ü\"\\");
            expected["providers"]["a"]["timeouts"] = json!({"idle_s": 5});
            let changed = changed.unwrap();
            prop_assert_eq!(value(&changed), expected, "{}\n{}", text, changed);
            prop_assert_eq!(changed.matches("// c").count(), text.matches("// c").count());
            let back = in_file(Some(&changed), |e| e.remove_provider("a").map(drop)).unwrap();
            prop_assert!(value(&back)["providers"].get("a").is_none());
        }
    }
}
