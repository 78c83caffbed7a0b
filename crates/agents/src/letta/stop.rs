//! Why a Letta agent stopped, and what that means for the attempt.

use crate::work::{Failure, Outcome, Reason};

/// A reason to stop other than that all was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
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
    /// One that is not known here, or none.
    Unknown,
}

const DONE: [&str; 3] = ["end_turn", "tool_rule", "stop"];

const ALL: [Stop; 11] = [
    Stop::MaxSteps,
    Stop::NoToolCall,
    Stop::RequiresApproval,
    Stop::Cancelled,
    Stop::Error,
    Stop::LlmApiError,
    Stop::InvalidLlmResponse,
    Stop::InvalidToolCall,
    Stop::MaxTokensExceeded,
    Stop::ContextWindowOverflow,
    Stop::InsufficientCredits,
];

impl Stop {
    pub const fn as_str(self) -> &'static str {
        match self {
            Stop::MaxSteps => "max_steps",
            Stop::NoToolCall => "no_tool_call",
            Stop::RequiresApproval => "requires_approval",
            Stop::Cancelled => "cancelled",
            Stop::Error => "error",
            Stop::LlmApiError => "llm_api_error",
            Stop::InvalidLlmResponse => "invalid_llm_response",
            Stop::InvalidToolCall => "invalid_tool_call",
            Stop::MaxTokensExceeded => "max_tokens_exceeded",
            Stop::ContextWindowOverflow => "context_window_overflow_in_system_prompt",
            Stop::InsufficientCredits => "insufficient_credits",
            Stop::Unknown => "stop_reason_unknown",
        }
    }

    /// What a turn came to that was answered. The prompt is in the agent's history in any case.
    pub(crate) fn outcome(said: Option<&str>) -> Outcome {
        let Some(said) = said else {
            return Outcome::Failed(Failure::doubtful(
                Reason::Stopped(Stop::Unknown),
                "the agent did not say why it stopped",
            ));
        };
        if DONE.contains(&said) {
            return Outcome::Done;
        }
        let stop = ALL.into_iter().find(|stop| stop.as_str() == said).unwrap_or(Stop::Unknown);
        Outcome::Failed(stop.failure())
    }

    fn failure(self) -> Failure {
        let reason = Reason::Stopped(self);
        let said = |what: &str| format!("the agent stopped with `{}`: {what}", self.as_str());
        match self {
            Stop::MaxSteps | Stop::NoToolCall => {
                Failure::permanent(reason, said("it did not come to an end"))
            }
            Stop::RequiresApproval => {
                Failure::permanent(reason, said("it waits for a human at its own server"))
            }
            Stop::Cancelled => Failure::permanent(reason, said("somebody stopped it there")),
            Stop::Error | Stop::LlmApiError => Failure::delivered(reason, said("it failed")),
            Stop::InvalidLlmResponse | Stop::InvalidToolCall => {
                Failure::delivered(reason, said("its model said what makes no sense"))
            }
            Stop::MaxTokensExceeded | Stop::ContextWindowOverflow => {
                Failure::permanent(reason, said("the agent needs to be changed"))
            }
            Stop::InsufficientCredits => {
                Failure::unpaid(reason, said("nobody pays for it any more"))
            }
            Stop::Unknown => {
                Failure::doubtful(reason, "the agent stopped for a reason that is not known here")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::run::Kind;

    use super::*;

    #[test]
    fn only_a_turn_that_came_to_its_end_is_done() {
        for (said, expected) in [
            ("end_turn", None),
            ("tool_rule", None),
            ("max_steps", Some(Kind::Permanent)),
            ("no_tool_call", Some(Kind::Permanent)),
            ("requires_approval", Some(Kind::Permanent)),
            ("cancelled", Some(Kind::Permanent)),
            ("error", Some(Kind::Delivered)),
            ("llm_api_error", Some(Kind::Delivered)),
            ("invalid_llm_response", Some(Kind::Delivered)),
            ("invalid_tool_call", Some(Kind::Delivered)),
            ("max_tokens_exceeded", Some(Kind::Permanent)),
            ("context_window_overflow_in_system_prompt", Some(Kind::Permanent)),
            ("insufficient_credits", Some(Kind::Unpaid)),
            ("a_new_one", Some(Kind::Doubtful)),
            ("", Some(Kind::Doubtful)),
        ] {
            let found = match Stop::outcome(Some(said)) {
                Outcome::Failed(failure) => Some(failure.kind),
                _ => None,
            };
            assert_eq!(found, expected, "{said}");
        }
        assert!(matches!(Stop::outcome(None), Outcome::Failed(it) if it.kind == Kind::Doubtful));
    }
}
