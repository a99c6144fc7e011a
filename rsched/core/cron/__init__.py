"""Cron expressions: what they mean, when they fire in a zone, and how they read in words.

Authority: the parser alone decides which expressions there are. It reads five fields and macros as vixie cron does, with `L`,
`W`, `#` and `H` as in Quartz and Jenkins, and refuses what crons read differently from one another. fields holds the grammar of
one field, days which days of a month match, timetable the instants in a zone (vixie cron's rules where clocks change), words
and notes what people are told.

Trusts: the pinned tzdata for offsets (rsched.core.schedule.zones); an Expression is canonical, as the parser made it.

Fails: CronError holds one text for each field that is refused, with what was found and what to write instead. An Expression
that never fires is refused as well, so that every search here ends.
"""
