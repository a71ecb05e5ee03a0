#![no_main]

tower_algenta_fuzz::target!(raw_messages);
