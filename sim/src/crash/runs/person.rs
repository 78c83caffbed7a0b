//! The person beside the daemon: answers what it asks, as long as it lives.
//!
//! An answer that is acknowledged is remembered, for the account.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use api::{Approval, ApprovalDecide, ApprovalList, ask};
use client::Socket;
use tokio::time::sleep;

use super::{PAUSE, greet};
use crate::dice::Dice;

/// One question of this many is answered with no.
const DENIES_ONE_IN: u64 = 5;
/// And one answer of this many is given twice.
const REPEATS_ONE_IN: u64 = 4;

/// Whether each question was approved, by what the daemon has acknowledged.
pub(super) type Answers = BTreeMap<String, bool>;

#[derive(Debug)]
pub(super) struct Person<'a> {
    pub(super) dice: Dice,
    pub(super) answers: &'a mut Answers,
}

impl Person<'_> {
    /// Returns when the daemon is gone, and not before.
    pub(super) async fn attend(&mut self, socket: &Path) {
        let Ok(daemon) = greet(socket).await else { return };
        while self.answer_all(&daemon).await.is_ok() {
            sleep(PAUSE).await;
        }
    }

    pub(super) async fn answer_all(&mut self, daemon: &Socket) -> Result<()> {
        let open = ask(daemon, ApprovalList::default()).await?.approvals;
        for question in open.iter().filter(|question| question.state == "pending") {
            self.answer(daemon, question).await?;
        }
        Ok(())
    }

    async fn answer(&mut self, daemon: &Socket, question: &Approval) -> Result<()> {
        let is_yes = !self.dice.is_one_in(DENIES_ONE_IN);
        let answer = ApprovalDecide {
            id: question.id.clone(),
            decision: if is_yes { "approve" } else { "deny" }.to_owned(),
            plan_hash: Some(question.plan_hash.clone()),
            ..ApprovalDecide::default()
        };
        let decided = ask(daemon, answer.clone()).await?;
        // What was answered in an earlier life stays as it was.
        let was_yes = decided.approval.state != "denied";
        self.answers.entry(question.id.clone()).or_insert(was_yes);
        if self.dice.is_one_in(REPEATS_ONE_IN) {
            ask(daemon, answer).await?;
        }
        Ok(())
    }
}
