# What other schedulers keep in a home directory.
mkdir -p .config/systemd/user/timers.target.wants .openclaw/cron .hermes/cron .letta
cat > .config/systemd/user/backup.timer <<'END'
[Unit]
Description=Nightly backup
[Timer]
OnCalendar=Mon..Fri 03:00
OnBootSec=15min
Persistent=true
[Install]
WantedBy=timers.target
END
ln -s ../backup.timer .config/systemd/user/timers.target.wants/
cat > .config/systemd/user/backup.service <<'END'
[Service]
Nice=10
ExecStart=/usr/local/bin/backup --all
END
cat > .openclaw/cron/jobs.json <<'END'
{"version": 1, "jobs": [
  {"id": "b496cd33", "name": "Morning brief", "enabled": true, "sessionTarget": "isolated",
   "schedule": {"kind": "cron", "expr": "0 7 * * 1-5", "tz": "Europe/Berlin", "staggerMs": 0},
   "payload": {"kind": "agentTurn", "message": "Summarize overnight updates.", "model": "x"},
   "delivery": {"mode": "announce"}},
  {"id": "0c1f", "name": "Build", "enabled": true, "schedule": {"kind": "every", "everyMs": 3600000},
   "payload": {"kind": "command", "argv": ["sh", "-lc", "make all"], "cwd": "/srv/app"}},
  {"id": "77aa", "name": "Heartbeat", "enabled": true, "declarationKey": "heartbeat:main",
   "schedule": {"kind": "every", "everyMs": 3600000}, "payload": {"kind": "systemEvent", "text": "x"}}]}
END
cat > .hermes/cron/jobs.json <<'END'
{"jobs": [
  {"id": "baae716c52bd", "name": "news", "prompt": "Summarise the news", "enabled": true, "state": "scheduled",
   "schedule": {"kind": "cron", "expr": "30 8 * * 1-5"}, "repeat": {"times": 10, "completed": 3},
   "deliver": "telegram", "skills": ["web"]}]}
END
cat > .letta/crons.json <<'END'
{"version": 1, "scheduler_owners": {}, "tasks": [
  {"id": "1a2b3c4d", "agent_id": "agent-123", "conversation_id": "new", "name": "standup", "cron": "0 9 * * *",
   "timezone": "Europe/Berlin", "recurring": true, "prompt": "What is next?", "status": "active"}]}
END
python3 - <<'END'
import sqlite3
database = sqlite3.connect("promptyoself.db")
database.execute("""CREATE TABLE unified_reminders (
    id INTEGER PRIMARY KEY, message TEXT, next_run DATETIME, status VARCHAR(50),
    created_at DATETIME, updated_at DATETIME, last_run DATETIME, active BOOLEAN,
    schedule_type VARCHAR(50), schedule_value VARCHAR(200), recurrence TEXT,
    event_count INTEGER, process_name TEXT, task_id TEXT, user_id TEXT,
    max_repetitions INTEGER, repetition_count INTEGER, agent_id VARCHAR(100))""")
insert = """INSERT INTO unified_reminders
    (id, message, next_run, active, schedule_type, schedule_value, max_repetitions, repetition_count, agent_id)
    VALUES (?, ?, '2035-01-01 00:00:00.000000', ?, 'cron', '0 9 * * *', ?, ?, 'agent-123')"""
database.executemany(insert, [(7, "Look at your mail.", 1, 10, 3), (8, "Call home", 0, None, 0)])
database.commit()
END
