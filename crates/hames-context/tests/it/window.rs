//! One behaviour at a time.

use hames_context::{Budget, Moment, Terms};

use crate::support::{Log, terse};

#[test]
fn a_long_turn_is_masked_and_then_summed_up() {
    let mut log = Log::new();
    let terms = Terms::new(Budget { window: 32_000, wanted_output: 8_000 }, 1_000);
    log.user("Read everything.");
    for n in 0..400 {
        log.step("", &[(&format!("src/{n}.rs"), &"word ".repeat(400))]);
        let ready = log.settle(Moment::AtBoundary, &terms, &terse).unwrap().unwrap();
        assert!(ready.input_estimate <= 24_000);
    }
    assert!(log.lines.iter().any(|line| line.starts_with("masked:")), "{:#?}", log.lines);
    assert!(log.lines.iter().any(|line| line.starts_with("compacted:")), "{:#?}", log.lines);
    assert!(log.texts()[0].contains("items summed up"), "{:#?}", log.texts());
    assert!(log.texts()[1].contains("Read everything."), "{:#?}", log.texts());
}
