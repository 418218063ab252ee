//! `hames models`: what every configured provider offers, asked at the same time.

use hames_model::list_models;
use serde_json::json;

use crate::config::{Config, Provider};
use crate::engine::endpoint;
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::output::text::{count, failure_lines};
use crate::output::{Out, clean, say};

pub(crate) fn run(json: bool, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let config = Config::load(&home, env)?;
    config.file.warnings.iter().for_each(|warning| say(&format!("hames: warning: {warning}")));
    let ready: Vec<&Provider> = config.providers.iter().filter(|provider| !provider.base_url.is_empty()).collect();
    if ready.is_empty() {
        // Says how to get a model.
        config.choose(None, None)?;
    }
    let in_force = config.choose(None, None).ok().map(|chosen| chosen.info.model.to_string());
    let answers = super::runtime()?.block_on(async {
        let asked: Vec<_> = ready
            .iter()
            .map(|provider| {
                let endpoint = endpoint(provider, &config, env);
                tokio::spawn(async move { list_models(&endpoint).await })
            })
            .collect();
        let mut answers = Vec::with_capacity(asked.len());
        for answer in asked {
            answers.push(answer.await);
        }
        answers
    });
    let mut out = Out::new();
    let mut any = false;
    for (provider, answer) in ready.iter().zip(answers) {
        let listed = match answer {
            Ok(Ok(listed)) => listed,
            Ok(Err(failure)) => {
                say(&failure_lines(&failure).join("\n"));
                continue;
            }
            Err(crashed) => {
                say(&format!("hames: asking {} failed: {crashed}", provider.name));
                continue;
            }
        };
        any = true;
        if listed.is_empty() && !json {
            out.line(format!("{} lists no models", provider.name))?;
        }
        for model in listed {
            let described = provider.models.iter().find(|known| known.id == model.id);
            let window = described.and_then(|known| known.context_window).or(model.context_window);
            let max_output = described.and_then(|known| known.max_output).or(model.max_output);
            let name = format!("{}/{}", provider.name, model.id);
            let is_default = in_force.as_ref() == Some(&name);
            if json {
                out.json(&json!({
                    "provider": provider.name, "id": model.id, "model": name, "context_window": window,
                    "max_output": max_output, "default": is_default,
                }))?;
                continue;
            }
            let window = window.map(|tokens| format!("  {} tokens", count(tokens))).unwrap_or_default();
            let mark = if is_default { "  (default)" } else { "" };
            out.line(format!("{}{window}{mark}", clean::line(&name)))?;
        }
    }
    out.finish()?;
    Ok(if any { exit::COMPLETE } else { exit::MODEL })
}
