#![no_main]

tower_algenta_fuzz::target!(argument_scrub);
