#![no_main]

tower_algenta_fuzz::target!(profile_filter);
