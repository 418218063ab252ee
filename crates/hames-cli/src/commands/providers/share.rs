//! `hames providers export` and `import`: the providers of the file as JSON, to carry them to another machine.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::Ground;
use crate::config::edit::edit;
use crate::config::{Config, FileConfig, has_secret_parameter, is_secret_name, shown_url};
use crate::exit::{self, Stop};
use crate::output::{Out, ask, clean, say};

/// Bytes of a file that is imported: as many as a configuration may have.
const MAX_IMPORT_BYTES: u64 = 1024 * 1024;

pub(super) fn export(ground: &Ground<'_>, names: &[String], with_keys: bool, output: &Path) -> Result<u8, Stop> {
    for name in names {
        ground.must_be_in_file(name)?;
    }
    let all = crate::config::edit::read(&ground.config.file.path)?;
    let mut providers = Map::new();
    let mut left_out = Vec::new();
    for (name, _) in &ground.config.file.providers {
        let Some(mut provider) = all.pointer("/providers").and_then(|all| all.get(name)).cloned() else { continue };
        if !names.is_empty() && !names.contains(name) {
            continue;
        }
        if !with_keys {
            left_out.extend(without_keys(&mut provider).into_iter().map(|key| format!("{name}.{key}")));
        }
        providers.insert(name.clone(), provider);
    }
    let mut exported = json!({"providers": providers});
    if names.is_empty()
        && let Some(model) = all.get("model")
    {
        exported["model"] = model.clone();
    }
    let text = format!("{exported:#}\n");
    if output == Path::new("-") {
        let mut out = Out::new();
        out.write_all(text.as_bytes())?;
        out.finish()?;
    } else {
        write_private(output, &text)
            .map_err(|e| Stop::usage(format!("{} cannot be written: {e}", output.display())))?;
    }
    if !left_out.is_empty() {
        say(&format!(
            "hames: left out, because they are secret (--with-keys writes them): {}",
            clean::line(&left_out.join(", "))
        ));
    }
    Ok(exit::COMPLETE)
}

/// Takes whatever is a key out of a provider; gives the names of what was taken.
fn without_keys(provider: &mut Value) -> Vec<String> {
    let mut taken = Vec::new();
    let Some(members) = provider.as_object_mut() else { return taken };
    if members.shift_remove("api_key").is_some() {
        taken.push("api_key".to_owned());
    }
    if let Some(headers) = members.get_mut("headers").and_then(Value::as_object_mut) {
        headers.retain(|name, _| {
            let is_secret = is_secret_name(name);
            if is_secret {
                taken.push(format!("headers.{name}"));
            }
            !is_secret
        });
    }
    if let Some(url) = members.get_mut("base_url")
        && let Some(text) = url.as_str()
        && (text.contains('@') || has_secret_parameter(text))
    {
        let bare = text.split(['?', '#']).next().unwrap_or(text);
        *url = json!(shown_url(bare).replace("…@", ""));
        taken.push("the secret part of base_url".to_owned());
    }
    taken
}

/// Writes a file that nobody else can read, and none that is there already.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

pub(super) fn import(ground: &Ground<'_>, file: &Path, replace: bool, keep: bool) -> Result<u8, Stop> {
    let text = read(file)?;
    let shown = if file == Path::new("-") { Path::new("standard input") } else { file };
    // Read as a configuration is: what would be wrong there is wrong here, with its line.
    let described = FileConfig::parse(shown, &text)?;
    described.warnings.iter().for_each(|warning| say(&format!("hames: warning: {warning}")));
    if described.providers.is_empty() {
        return Err(Stop::usage(format!("{} has no \"providers\" to import", shown.display())));
    }
    let incoming = crate::config::edit::value_of(shown, &text)?;
    let names: Vec<&String> = described.providers.iter().map(|(name, _)| name).collect();
    let mut said = Vec::new();
    edit(&ground.config.file.path, |edit| {
        for name in &names {
            let Some(new) = incoming.pointer("/providers").and_then(|all| all.get(name.as_str())) else { continue };
            let what = match edit.provider(name)? {
                None => {
                    edit.put_provider(name, new)?;
                    "added"
                }
                Some(old) if same_but_for_keys(&old, new) => "is the same already:",
                Some(_) if keep => "kept as it is:",
                Some(old) if replace || may_replace(name, new)? => {
                    edit.put_provider(name, &with_old_key(new.clone(), &old))?;
                    "replaced"
                }
                Some(_) => "kept as it is:",
            };
            said.push(format!("hames: {what} {}", clean::line(name)));
        }
        let model = incoming.get("model").and_then(Value::as_str);
        if let Some(model) = model.filter(|_| ground.config.file.model.is_none() || replace) {
            edit.set_model(Some(model))?;
            said.push(format!("hames: the default model is {}", clean::line(model)));
        }
        Ok(())
    })?;
    said.iter().for_each(|line| say(line));
    let config = Config::load(&ground.home, ground.env)?;
    ground.say_open(&config, |name| names.iter().any(|imported| *imported == name));
    Ok(exit::COMPLETE)
}

fn read(file: &Path) -> Result<String, Stop> {
    let mut bytes = Vec::new();
    let shown = file.display();
    let mut source: Box<dyn Read> = match file == Path::new("-") {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(std::fs::File::open(file).map_err(|e| Stop::usage(format!("{shown} cannot be read: {e}")))?),
    };
    source
        .as_mut()
        .take(MAX_IMPORT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Stop::usage(format!("{shown} cannot be read: {e}")))?;
    if bytes.len() as u64 > MAX_IMPORT_BYTES {
        return Err(Stop::usage(format!("{shown} is larger than 1 MB; this is no configuration")));
    }
    let text = String::from_utf8(bytes).map_err(|_| Stop::usage(format!("{shown} is not UTF-8")))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// An export has no keys; that does not make it another provider.
fn same_but_for_keys(old: &Value, new: &Value) -> bool {
    let (mut bare_old, mut bare_new) = (old.clone(), new.clone());
    let in_new = without_keys(&mut bare_new);
    without_keys(&mut bare_old);
    old == new || (in_new.is_empty() && bare_old == bare_new)
}

/// A key that did not come along is kept, unless it would go to another place than before: whoever made the file could
/// have it sent to himself.
fn with_old_key(mut new: Value, old: &Value) -> Value {
    if !same_place(old, &new) {
        return new;
    }
    let has_key = ["api_key", "api_key_env"].iter().any(|key| new.get(key).is_some());
    if !has_key && let Some(key) = old.get("api_key") {
        new["api_key"] = key.clone();
    }
    if let Some(headers) = old.get("headers").and_then(Value::as_object) {
        for (name, value) in headers.iter().filter(|(name, _)| is_secret_name(name)) {
            if new.pointer("/headers").is_none_or(|headers| headers.get(name).is_none()) {
                new["headers"][name] = value.clone();
            }
        }
    }
    new
}

/// Scheme, host and port of a provider's base URL, without what may stand before the host.
fn place(provider: &Value) -> Option<String> {
    let url = provider.get("base_url")?.as_str()?.trim().to_ascii_lowercase();
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Some(format!("{scheme}://{host}"))
}

fn same_place(old: &Value, new: &Value) -> bool {
    place(old).is_some() && place(old) == place(new)
}

fn may_replace(name: &str, new: &Value) -> Result<bool, Stop> {
    let address = place(new).map_or(String::new(), |place| format!(" (the new one is at {})", clean::line(&place)));
    let question =
        format!("There is a provider {} already, with other settings{address}. Replace it?", clean::line(name));
    ask(&question).ok_or_else(|| {
        Stop::usage(format!(
            "there is a provider \"{}\" already, with other settings; say --replace or --keep. Nothing was imported",
            clean::line(name)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_out_and_everything_else_stays() {
        let mut provider = json!({
            "base_url": "https://me:pw@host/v1?api-key=k", "api_key": "sk", "api_key_env": "VAR", "odd": [1],
            "headers": {"X-Api-Key": "h", "X-Title": "t"},
        });
        let taken = without_keys(&mut provider);
        assert_eq!(taken, ["api_key", "headers.X-Api-Key", "the secret part of base_url"]);
        assert_eq!(
            provider,
            json!({"base_url": "https://host/v1", "api_key_env": "VAR", "odd": [1], "headers": {"X-Title": "t"}})
        );
        let mut plain = json!({"base_url": "https://host/v1?api-version=1"});
        assert_eq!(
            (without_keys(&mut plain).len(), plain["base_url"].as_str()),
            (0, Some("https://host/v1?api-version=1"))
        );
        assert_eq!(without_keys(&mut json!(7)).len(), 0);
    }

    #[test]
    fn a_key_that_does_not_come_along_is_kept() {
        let old = json!({"base_url": "https://a/v1", "api_key": "old", "headers": {"X-Token": "t", "X-Title": "gone"}});
        let kept = |url: &str| json!({"base_url": url, "api_key": "old", "headers": {"X-Token": "t"}});
        let bare = |url: &str| json!({"base_url": url});
        for (new, expected) in [
            (bare("https://a/v2"), kept("https://a/v2")),
            (bare("HTTPS://A/other?x=1"), kept("HTTPS://A/other?x=1")),
            (bare("https://user@a/v1"), kept("https://user@a/v1")),
            // To another host, port or scheme no key goes along by itself.
            (bare("https://b/v1"), bare("https://b/v1")),
            (bare("http://a/v1"), bare("http://a/v1")),
            (bare("https://a:8443/v1"), bare("https://a:8443/v1")),
            (bare("https://a.evil.example/v1"), bare("https://a.evil.example/v1")),
            (bare("https://a@evil.example/v1"), bare("https://a@evil.example/v1")),
            (bare("a"), bare("a")),
            (json!({}), json!({})),
            (
                json!({"base_url": "https://a", "api_key": "new", "headers": {"X-Token": "u"}}),
                json!({"base_url": "https://a", "api_key": "new", "headers": {"X-Token": "u"}}),
            ),
            (
                json!({"base_url": "https://a", "api_key_env": "V"}),
                json!({"base_url": "https://a", "api_key_env": "V", "headers": {"X-Token": "t"}}),
            ),
        ] {
            assert_eq!(with_old_key(new, &old), expected);
        }
        assert!(same_but_for_keys(&old, &json!({"base_url": "https://a/v1", "headers": {"X-Title": "gone"}})));
        assert!(!same_but_for_keys(
            &old,
            &json!({"base_url": "https://a/v1", "api_key": "other", "headers": {"X-Token": "t", "X-Title": "gone"}})
        ));
        assert!(!same_but_for_keys(&old, &json!({"base_url": "b"})));
    }
}
