//! What the guard costs for each token that streams: `cargo bench -p hames-agent --bench guard`; `cargo xtask window` keeps
//! the figures and holds them to their limits.

use std::hint::black_box;
use std::time::Instant;

use hames_agent::Guard;
use hames_protocol::{Delta, GuardLevel, GuardSettings};
use hames_testkit::counted;
use serde_json::json;

/// Tokens of each stream.
const TOKENS: usize = 200_000;
const ROUNDS: usize = 5;

/// Pieces of four characters, as models stream them: words that hardly repeat, lines now and then.
fn pieces() -> Vec<String> {
    let mut seed = 7u64;
    let mut text = String::new();
    while text.len() < TOKENS * 4 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!("{:x}{}", seed >> 44, if seed >> 60 == 0 { "\n" } else { " " }));
    }
    text.as_bytes().chunks(4).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect()
}

fn main() {
    let pieces = pieces();
    for (name, watches_answers, delta) in [
        ("reasoning", false, Delta::Reasoning as fn(String) -> Delta),
        ("answers", true, Delta::Text),
        ("answers, not watched", false, Delta::Text),
    ] {
        let deltas: Vec<[Delta; 1]> = pieces.iter().map(|piece| [delta(piece.clone())]).collect();
        let mut figures: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let mut settings = GuardSettings::level(GuardLevel::Medium);
                settings.guard_response = Some(watches_answers);
                let mut guard = Guard::new(&settings);
                let began = Instant::now();
                for delta in &deltas {
                    black_box(guard.watch(delta));
                }
                began.elapsed().as_nanos() as f64 / deltas.len() as f64
            })
            .collect();
        figures.sort_by(f64::total_cmp);
        counted(
            &json!({"figure": "guard", "of": name, "ns_per_token": figures[ROUNDS / 2].round(), "limit_ns": 1_000}),
        );
    }
}
