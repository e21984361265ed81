pub fn reference() -> String { String::new() }
