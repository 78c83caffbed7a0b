//! Attacks: hostile inputs by their id, each with its safe outcome. The tests of an id are here, or where the behaviour is
//! tested anyway. Paths begin with a crate, or are modules of this test program.
//!
//! | id | attack | test |
//! |---|---|---|
//! | A1 | a consumed approval again | `approvals::policy::tier_2_run_waits_for_approval_and_starts_once` |
//! | A2 | many threads consume one approval | runtime `concurrent_approvals_start_a_run_once` |
//! | A3 | the decision of one approval for another plan | [`approvals`] `a3_…`, `a12_…` for signatures |
//! | A4 | one byte differs from the plan | runtime `a_run_that_differs_by_one_byte_from_its_approval_does_not_start` |
//! | A5 | a duplicate key | `access::duplicate_keys`, `b06_…` for forms |
//! | A6 | a script edited after approval | `access::execution_fingerprint::approved_run_is_refused_when_its_fingerprint_changed` |
//! | A7 | a parent directory replaced by a link | the same |
//! | A8 | a changed environment | the same, and `daemon_environment_does_not_change_what_an_agent_runs` |
//! | A9 | a moved branch | does not apply: no plan has a git precondition yet |
//! | A10 | expiry to the millisecond, and a clock set back | kernel `a_pending_approval_expires_exactly_at_its_deadline`, runtime `an_approval_expired_by_clock_or_ledger_starts_no_run` |
//! | A11 | revocation races with consumption | runtime `approvals`, and the simulation |
//! | A12 | an approval of another installation or a copy | `approvals::strict_prod::a12_…`, `approval_is_used_once_after_the_data_directory_was_copied` |
//! | A13 | kill -9 around the effect | [`approvals`] `a13_…`, and the crash campaigns |
//! | A14, A15 | step proofs | do not apply: there are none yet |
//! | A16 | malformed tokens | [`requests`] `a16_…`, `access::tokens::every_invalid_token_gets_the_same_response` |
//! | B1 | an approve tool over MCP | `mcp::permissions`, mcp `b1_…` |
//! | B2 | an agent's token at the approve endpoint | `http::requests::no_path_for_programs_decides_an_approval`, `b06_…` |
//! | B3 | a search for a person's token | [`secrets`] `b3_…` |
//! | B4 | the requester's second credential | [`approvals`] `b4_…`, and the simulation |
//! | B5 | one person decides twice | `approvals::several_people::two_approvers_must_be_different_people` |
//! | B6 | a role that is too low | [`approvals`] `b6_…`, `approvals::page::b06_…` |
//! | B7 | another run uses the approval | kernel `approval`, runtime `a_run_that_differs_…` |
//! | B8 | cross-site forms | `approvals::page::b06_…` |
//! | B9 | cross-site WebSocket | does not apply: there is no WebSocket |
//! | B10 | DNS rebinding | `http::requests::foreign_hosts_and_origins_are_refused_before_the_request_is_executed` |
//! | B11 | a webhook's key as a token | `http::requests::g1_webhook_cannot_reach_the_daemon_and_its_key_is_not_a_token` |
//! | B12 | smuggling and proxy headers | [`requests`] `b12_…` |
//! | C1, C2 | wide deny or ask, narrow allow | policy `attacks` |
//! | C3 | a rule that cannot be evaluated | policy `a_rule_that_cannot_be_evaluated_refuses_the_load_or_denies`, `approvals::policy::policy_file_is_applied_and_an_invalid_one_refused` |
//! | C4, C5 | unknown capability, false annotation | policy `attacks` |
//! | C6 | a changed MCP tool | runtime `tool_calls` for our own tools; no outside MCP server is called yet |
//! | C7, C8, C9 | shell chains, programs that run programs, large rules | policy `attacks` |
//! | C10, C11 | budgets under load and clock jumps | runtime `budget`, `clock_changes` |
//! | C12 | 10,000 due jobs | runtime `ten_thousand_missed_slots_stay_within_limits` |
//! | C13 | writes to policy and configuration | [`paths`] `d1_…`, policy `a_write_to_a_protected_path_is_asked_whatever_the_rules_say` |
//! | D1, D3, D5 | paths that lead elsewhere, `/proc`, odd names | [`paths`] `d1_…`; names after `--`: agents `command` |
//! | D2 | links | [`paths`] `d2_…`, crate files; an agent's own tree has no sandbox yet |
//! | D4 | pipes, devices, sockets | `access::pipes` |
//! | D6 | archives | does not apply: nothing is extracted |
//! | D7 | temporary directories | [`paths`] `d7_…` |
//! | D8 | protected names | policy `a_write_to_a_protected_path_is_asked_whatever_the_rules_say` |
//! | E1–E9, F1–F6 | git, sandbox | do not apply yet: there is neither |
//! | G1 | internal addresses | agents `g1_…`, `operations::notifications::g1_…`, `http::requests::g1_…` |
//! | G2 | endless, slow and packed responses | agents `webhook`, `letta`; `operations::notifications` |
//! | G3 | WebSocket frames | does not apply: there is no WebSocket |
//! | G4 | secrets in every encoding | `access::secrets::g4_…`, [`secrets`] `credentials_in_a_url_…`, `compat::letta::g4_…`, agents `g4_…`, crate redact |
//! | G5 | a changed ledger | `ledger`, `faults`, crate ledger |
//! | G6 | hostile texts where people decide | [`approvals`] `g6_…`, `approvals::page` |

mod approvals;
mod paths;
mod requests;
mod secrets;
