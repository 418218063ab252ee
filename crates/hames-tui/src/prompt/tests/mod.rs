//! The prompt as a person and the server meet it.

mod anything;
mod files;
mod kit;
mod screens;
mod sending;
mod waiting;
mod writing;
