//! Why a Letta agent stopped, and which outcome that is for the attempt.

use crate::attempt::{Failure, Outcome, Reason};

/// A reason to stop before the turn was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    MaxSteps,
    NoToolCall,
    RequiresApproval,
    Cancelled,
    Error,
    LlmApiError,
    InvalidLlmResponse,
    InvalidToolCall,
    MaxTokensExceeded,
    ContextWindowOverflow,
    InsufficientCredits,
    /// An unknown reason, or none.
    Unknown,
}

const DONE: [&str; 3] = ["end_turn", "tool_rule", "stop"];

const ALL: [StopReason; 11] = [
    StopReason::MaxSteps,
    StopReason::NoToolCall,
    StopReason::RequiresApproval,
    StopReason::Cancelled,
    StopReason::Error,
    StopReason::LlmApiError,
    StopReason::InvalidLlmResponse,
    StopReason::InvalidToolCall,
    StopReason::MaxTokensExceeded,
    StopReason::ContextWindowOverflow,
    StopReason::InsufficientCredits,
];

impl StopReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            StopReason::MaxSteps => "max_steps",
            StopReason::NoToolCall => "no_tool_call",
            StopReason::RequiresApproval => "requires_approval",
            StopReason::Cancelled => "cancelled",
            StopReason::Error => "error",
            StopReason::LlmApiError => "llm_api_error",
            StopReason::InvalidLlmResponse => "invalid_llm_response",
            StopReason::InvalidToolCall => "invalid_tool_call",
            StopReason::MaxTokensExceeded => "max_tokens_exceeded",
            StopReason::ContextWindowOverflow => "context_window_overflow_in_system_prompt",
            StopReason::InsufficientCredits => "insufficient_credits",
            StopReason::Unknown => "stop_reason_unknown",
        }
    }

    /// The outcome of a turn that got a response. The prompt is in the agent's history in any case.
    pub(crate) fn outcome_of(reported: Option<&str>) -> Outcome {
        let Some(reported) = reported else {
            return Outcome::Failed(Failure::indeterminate(
                Reason::Stopped(StopReason::Unknown),
                "the server gave no reason why the agent stopped",
            ));
        };
        if DONE.contains(&reported) {
            return Outcome::Done;
        }
        let stop =
            ALL.into_iter().find(|stop| stop.as_str() == reported).unwrap_or(StopReason::Unknown);
        Outcome::Failed(stop.failure())
    }

    fn failure(self) -> Failure {
        let reason = Reason::Stopped(self);
        let message = |what: &str| format!("the agent stopped with `{}`: {what}", self.as_str());
        match self {
            StopReason::MaxSteps | StopReason::NoToolCall => {
                Failure::permanent(reason, message("it did not finish"))
            }
            StopReason::RequiresApproval => {
                Failure::permanent(reason, message("it waits for an approval on its own server"))
            }
            StopReason::Cancelled => {
                Failure::permanent(reason, message("it was stopped on its server"))
            }
            StopReason::Error | StopReason::LlmApiError => {
                Failure::delivered(reason, message("it failed"))
            }
            StopReason::InvalidLlmResponse | StopReason::InvalidToolCall => {
                Failure::delivered(reason, message("its model returned an invalid response"))
            }
            StopReason::MaxTokensExceeded | StopReason::ContextWindowOverflow => {
                Failure::permanent(reason, message("the agent needs to be changed"))
            }
            StopReason::InsufficientCredits => {
                Failure::payment_required(reason, message("its account has no credits left"))
            }
            StopReason::Unknown => {
                Failure::indeterminate(reason, "the agent stopped for an unknown reason")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::run::FailureKind;

    use super::*;

    #[test]
    fn only_a_finished_turn_is_done() {
        for (reported, expected) in [
            ("end_turn", None),
            ("tool_rule", None),
            ("max_steps", Some(FailureKind::Permanent)),
            ("no_tool_call", Some(FailureKind::Permanent)),
            ("requires_approval", Some(FailureKind::Permanent)),
            ("cancelled", Some(FailureKind::Permanent)),
            ("error", Some(FailureKind::Delivered)),
            ("llm_api_error", Some(FailureKind::Delivered)),
            ("invalid_llm_response", Some(FailureKind::Delivered)),
            ("invalid_tool_call", Some(FailureKind::Delivered)),
            ("max_tokens_exceeded", Some(FailureKind::Permanent)),
            ("context_window_overflow_in_system_prompt", Some(FailureKind::Permanent)),
            ("insufficient_credits", Some(FailureKind::PaymentRequired)),
            ("a_new_one", Some(FailureKind::Indeterminate)),
            ("", Some(FailureKind::Indeterminate)),
        ] {
            let found = match StopReason::outcome_of(Some(reported)) {
                Outcome::Failed(failure) => Some(failure.kind),
                _ => None,
            };
            assert_eq!(found, expected, "{reported}");
        }
        assert!(
            matches!(StopReason::outcome_of(None), Outcome::Failed(it) if it.kind == FailureKind::Indeterminate)
        );
    }
}
