#![no_main]

tower_algenta_fuzz::target!(webhook_filter);
