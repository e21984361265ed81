pub fn example() -> String { String::new() }
