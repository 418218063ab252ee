//! What is left when the command is killed at any moment, and when everything around it fails.
//!
//! By default a few deaths and steps. `HAMES_SOAK=1` takes the full numbers, `HAMES_SEED` says where the choices begin,
//! and `HAMES_SOAK_REPORT` names a file that gets one line of JSON a test.

mod aim;
mod chaos;
mod death;
pub(crate) mod dice;
mod life;
mod log;
mod reference;
mod remains;
mod story;
