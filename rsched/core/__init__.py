"""Pure domain: ids, model, states, schedules, retry, errors, settings. No I/O, no clock, no await."""
