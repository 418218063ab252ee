//! A function for every row of the table.

mod message;
mod run;
mod session;
mod system;

use futures_util::future::BoxFuture;

use super::call::{Answered, Call};
use super::{events, transfer};

/// What answers an endpoint.
pub(super) type Route = fn(Call) -> BoxFuture<'static, Answered>;

macro_rules! routes {
    ($($name:literal => $function:path,)*) => {
        /// What answers the endpoint of this name.
        pub(super) fn of(name: &str) -> Option<Route> {
            match name {
                $( $name => Some(|call| Box::pin($function(call))), )*
                _ => None,
            }
        }

        /// Every name that is answered.
        #[cfg(test)]
        pub(super) const NAMES: &[&str] = &[$($name),*];
    };
}

routes! {
    "health" => system::health,
    "server_status" => system::status,
    "stop_server" => system::stop,
    "list_sessions" => session::list,
    "create_session" => session::create,
    "import_session" => transfer::import,
    "get_session" => session::get,
    "rename_session" => session::rename,
    "delete_session" => session::delete,
    "change_settings" => session::change_settings,
    "branch_session" => session::branch,
    "cut_session" => session::cut,
    "move_session" => session::move_to,
    "export_session" => transfer::export,
    "read_log" => session::log,
    "follow_events" => events::follow,
    "send_message" => message::send,
    "list_pending" => message::pending,
    "edit_pending" => message::edit,
    "cancel_pending" => message::cancel,
    "pause_pending" => message::pause,
    "abort_run" => message::abort,
    "list_waiting" => message::waiting,
    "answer_approval" => message::answer_approval,
    "answer_question" => message::answer_question,
    "decide_proposals" => message::decide_proposals,
    "list_changes" => run::changes,
    "apply_changes" => run::apply,
    "discard_changes" => run::discard,
    "find_files" => run::files,
    "attach_file" => run::attach,
    "read_blob" => run::blob,
    "get_context" => run::context,
    "preview_context" => run::preview,
    "compact_session" => run::compact,
    "add_pin" => run::add_pin,
    "remove_pin" => run::remove_pin,
    "list_runs" => run::ledgers,
    "get_run" => run::ledger,
    "search" => session::search,
    "list_models" => system::models,
    "list_providers" => system::providers,
    "save_provider" => system::save_provider,
    "known_providers" => system::known_providers,
    "test_provider" => system::test_provider,
    "get_settings" => system::configuration,
    "database_stats" => system::database,
    "vacuum_database" => system::vacuum,
}

#[cfg(test)]
mod tests {
    use hames_protocol::api::endpoint::ENDPOINTS;

    use super::*;

    #[test]
    fn every_row_has_a_function_and_every_function_a_row() {
        let mut rows: Vec<_> = ENDPOINTS.iter().map(|row| row.name).collect();
        let mut names = NAMES.to_vec();
        rows.sort_unstable();
        names.sort_unstable();
        assert_eq!(names, rows);
        assert!(names.iter().all(|name| of(name).is_some()));
    }
}
