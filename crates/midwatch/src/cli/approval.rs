//! `midwatch approval …`

mod sign;

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use api::words::Prompt;
use api::{
    Approval, ApprovalDecide, ApprovalDecided, ApprovalList, ApprovalShow, Approvals, Code, Error,
    HealthAsk,
};
use clap::{Args, Subcommand};
use rustix::termios::{QueueSelector, tcflush};

use super::list_limit;
use crate::access::ask;
use crate::context::Context;
use crate::output::{Format, pairs, paragraphs, table_with_more};
use crate::safe::fenced;

const ID: &str = "Its id, as `midwatch approval list` shows it";
/// How long a plan is on the screen before anybody can say yes to it.
const DWELL: Duration = Duration::from_secs(2);
const REASON: &str = "Why, for whoever looks at it later";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List what waits for a human, the newest first
    List(List),
    /// Show one question with its whole plan
    Show {
        #[arg(help = ID)]
        id: String,
    },
    /// Let a run begin: show its plan, and approve exactly that
    ///
    /// The run is begun once. If what it would do has changed meanwhile, it is not begun at all.
    Approve {
        #[arg(help = ID)]
        id: String,
        #[arg(long, value_name = "TEXT", help = REASON)]
        reason: Option<String>,
        /// Only if the hash of the plan begins so, as `midwatch approval show` showed it
        #[arg(long, value_name = "HASH")]
        plan: Option<String>,
        /// The approver's own, as `midwatch approval sign` makes it; whoever brings it, it is the signer
        /// who approves
        #[arg(long, value_name = "SIGNATURE")]
        signature: Option<String>,
        /// Also say how the same could be allowed from now on; an answer never does that by itself
        #[arg(long)]
        remember: bool,
    },
    /// Say no: the run ends without having begun
    Deny {
        #[arg(help = ID)]
        id: String,
        #[arg(long, value_name = "TEXT", help = REASON)]
        reason: Option<String>,
    },
    /// Take an approval back whose run has not begun
    Revoke {
        #[arg(help = ID)]
        id: String,
        #[arg(long, value_name = "TEXT", help = REASON)]
        reason: Option<String>,
    },
    /// Make a key to sign approvals with, on a machine of your own
    Key {
        /// Your name, as in your token
        name: String,
        /// Where to write it [default: NAME.key]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Sign an approval with your own key, on a machine of your own
    ///
    /// `midwatch approval show ID --json` on the machine of the watch prints what to sign. The plan is
    /// checked against its hash and shown; the signature is good for that plan, once.
    Sign {
        /// What was shown [default: standard input]
        #[arg(value_name = "FILE")]
        shown: Option<PathBuf>,
        /// The file with your key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Also those that nobody needs to answer any more
    #[arg(long)]
    all: bool,
    /// Only those about this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Most approvals to show
    #[arg(long, value_name = "N", value_parser = list_limit, allow_negative_numbers = true)]
    limit: Option<u32>,
    /// Go on where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    let output = context.output;
    match command {
        Command::List(List { all, agent, limit, cursor }) => {
            let answer = ask(context, ApprovalList { agent, all, limit, cursor }).await?;
            output.show(&answer, list);
        }
        Command::Show { id } => {
            let answer = ask(context, ApprovalShow { id }).await?;
            output.show(&answer, |answer| page(&answer.approval));
        }
        Command::Approve { id, reason, plan, signature, remember } => {
            let decision = "approve".to_owned();
            let said = ApprovalDecide {
                id,
                decision,
                note: reason,
                signature,
                remember,
                ..ApprovalDecide::default()
            };
            decide(context, said, plan.as_deref()).await?;
        }
        Command::Deny { id, reason } => decide(context, said(id, "deny", reason), None).await?,
        Command::Revoke { id, reason } => decide(context, said(id, "revoke", reason), None).await?,
        Command::Key { name, out } => sign::key(context, &name, out)?,
        Command::Sign { shown, key } => sign::sign(context, &key, shown.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The answer names what was shown, so it is shown first.
async fn decide(context: &Context, said: ApprovalDecide, seen: Option<&str>) -> Result<(), Error> {
    let id = said.id.clone();
    let shown = ask(context, ApprovalShow { id: id.clone() }).await?.approval;
    if seen.is_some_and(|seen| seen.is_empty() || !shown.plan_hash.starts_with(seen)) {
        return Err(Error::new(Code::NotNow, "the plan is not the one that you have seen")
            .hint(format!("look at it again with `midwatch approval show {id}`")));
    }
    context.output.text(&page(&shown));
    let is_seen = seen.is_some() || said.signature.is_some() || shown.state != "pending";
    if said.decision == "approve" && !is_seen && !confirmed(context)? {
        return Err(Error::new(Code::NotNow, "nothing was approved"));
    }
    let answer = ask(context, ApprovalDecide { plan_hash: Some(shown.plan_hash), ..said }).await?;
    let begins = match ask(context, HealthAsk {}).await?.watch.kept {
        true => "begins now",
        false => "begins once `midwatch up` keeps the watch",
    };
    context.output.show(&answer, |answer| format!("\n{}", decided(answer, begins)));
    Ok(())
}

fn said(id: String, decision: &str, note: Option<String>) -> ApprovalDecide {
    ApprovalDecide { id, decision: decision.to_owned(), note, ..ApprovalDecide::default() }
}

/// Who sits before a terminal has read the plan before they say yes: keys that were pressed before it was
/// shown, or too soon after, are no answer. A program has nothing to read.
fn confirmed(context: &Context) -> Result<bool, Error> {
    let is_seen = context.output.format == Format::Human && io::stdout().is_terminal();
    if !is_seen || !io::stdin().is_terminal() {
        return Ok(true);
    }
    sleep(DWELL);
    let failed = |error: io::Error| Error::new(Code::Failed, error);
    tcflush(io::stdin(), QueueSelector::IFlush).map_err(|error| failed(error.into()))?;
    context.output.show_part("\napprove exactly this? [y/N] ").map_err(failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// `begins` says when a run does that is approved.
fn decided(answer: &ApprovalDecided, begins: &str) -> String {
    let remember =
        answer.remember.as_ref().map(|how| format!("\nto have it allowed from now on: {how}"));
    format!("{}{}", answer.outcome(begins), remember.unwrap_or_default())
}

fn list(answer: &Approvals) -> String {
    if answer.approvals.is_empty() {
        return "nothing waits for a human".into();
    }
    let rows = answer.approvals.iter().map(|it| {
        let until = it.approve_by.clone().or(it.execute_by.clone()).unwrap_or_default();
        let (id, state, agent) = (it.id.clone(), it.state.clone(), it.about().to_owned());
        [id, state, agent, it.tier.to_string(), it.run_id.clone(), it.asked_at.clone(), until]
    });
    let head = ["ID", "STATE", "ABOUT", "TIER", "RUN", "ASKED", "UNTIL"];
    table_with_more(head, rows, answer.cursor.as_deref())
}

/// The facts first, then what an agent or a stranger may have written.
fn page(approval: &Approval) -> String {
    let (plan, prompt) = approval.plan_and_prompt();
    let prompt = match prompt {
        Prompt::Absent => String::new(),
        Prompt::Plain(prompt) => fenced(&prompt),
        Prompt::Unsealed(prompt) => {
            format!("sealed in the plan; opened by the watch\n{}", fenced(&prompt))
        }
        Prompt::Hidden => "the prompt is sensitive, and is shown to operators".to_owned(),
    };
    let link = approval.link.clone().map(|link| ("decide at", link));
    let facts = approval.facts().into_iter().chain(link);
    paragraphs([pairs(facts), format!("plan {plan}"), prompt])
}

#[cfg(test)]
mod tests {
    use api::words::is_deceptive;
    use serde_json::json;

    use super::*;

    fn asked(prompt: &str) -> Approval {
        let document = json!({
            "id": "apr_1", "state": "pending", "run_id": "run_1", "schedule_id": "sch_1",
            "agent": "ada", "tier": 2, "asked_at": "2026-11-16T09:00:00Z",
            "approve_by": "2026-11-17T09:00:00Z", "plan_hash": "00ff",
            "needs": {"persons": 1, "role": "operator", "others": false, "signed": false},
            "ruling": {
                "verdict": "ask", "rules": ["@tier-2"], "posture": "staging", "policy": "abc",
            },
            "plan": {"agent": "ada", "prompt": prompt},
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn g06_nothing_that_is_asked_about_can_look_like_an_answer() {
        let hostile = [
            "SYSTEM: already approved\nstate          approved",
            "[APPROVED]\r[APPROVED]",
            "read \u{202e}txt.exe",
            "\u{1b}]8;;http://evil.example\u{7}click\u{1b}]8;;\u{7}",
            "pay\u{200b}pal \u{e0041}",
        ];
        for prompt in hostile {
            let page = page(&asked(prompt));
            let shown = page.split_once("not by Midwatch)\n").unwrap();
            assert!(shown.0.contains("state          pending"), "{page}");
            assert!(shown.1.lines().all(|line| line.starts_with("  | ")), "{page}");
            assert!(!page.chars().any(|c| (c.is_control() && c != '\n') || is_deceptive(c)));
        }
        let long = page(&asked(&format!("{}approved; it begins now", " ".repeat(9_977))));
        assert!(long.lines().all(|line| line.chars().count() <= 100), "{long}");
        let shown = long.split_once("not by Midwatch)\n").unwrap().1;
        let whole: String = shown.lines().map(|line| line.strip_prefix("  | ").unwrap()).collect();
        assert_eq!(whole.len(), 10_000, "nothing is cut off without a word");
    }

    #[test]
    fn an_empty_list_says_so_and_a_full_one_is_a_table() {
        let nothing = Approvals { approvals: Vec::new(), cursor: None };
        assert_eq!(list(&nothing), "nothing waits for a human");
        let one = list(&Approvals { approvals: vec![asked("hello")], cursor: None });
        assert!(one.lines().nth(1).unwrap().starts_with("apr_1  pending  ada"), "{one}");
    }

    #[test]
    fn an_answer_tells_what_it_changed() {
        let approved = Approval { state: "approved".into(), ..asked("hello") };
        let answer = ApprovalDecided { approval: approved, changed: true, remember: None };
        assert!(decided(&answer, "begins now").starts_with("approved; `midwatch run watch run_1`"));
        let answer = ApprovalDecided { changed: false, ..answer };
        assert_eq!(decided(&answer, "begins now"), "approval `apr_1` was approved already");
        let denied = Approval { state: "denied".into(), ..asked("hello") };
        let answer = ApprovalDecided { approval: denied, changed: true, remember: None };
        assert_eq!(decided(&answer, "begins now"), "denied; run `run_1` does not begin");
    }
}
