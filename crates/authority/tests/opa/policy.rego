# The same policy as the rules in `opa.rs`: what CEL refuses because of an error stands here as a rule.
package tollgate

default allow := false

allow if {
	not denied
	allowed
}

# outside
denied if not inside

inside if net.cidr_contains("10.0.0.0/8", input.source)

inside if net.cidr_contains("192.168.7.0/24", input.source)

inside if net.cidr_contains("2001:db8::/32", input.source)

# interns
denied if {
	"frontier" in input.backends
	"groups" in object.keys(input.claims)
	intern_or_odd
}

intern_or_odd if "intern" in group_names

intern_or_odd if not group_names

group_names := input.claims.groups if is_array(input.claims.groups)

group_names := object.keys(input.claims.groups) if is_object(input.claims.groups)

# mallory
denied if input.user == "mallory"

# frozen
denied if input.tags.cost == "frozen"

# night
denied if {
	startswith(input.model, "größe-*")
	night
}

night if time.clock([input.time_ns, "America/New_York"])[0] < 6

night if time.weekday([input.time_ns, "Asia/Kolkata"]) == "Sunday"

# keys
denied if regex.match("^(tmp|test)-[0-9]{2,4}$", input.key)

# paths
denied if contains(input.path, "..")

denied if input.method == "DELETE"

denied if input.operation == ""

# quota
denied if {
	"quota" in object.keys(input.claims)
	not is_number(input.claims.quota)
}

denied if {
	is_number(input.claims.quota)
	input.claims.quota <= 0
}

# coding
allowed if {
	input.workload == "coding"
	input.model in ["gpt-4*", "größe-*mini", "qwen/3 coder"]
	input.route != "legacy"
	some backend in input.backends
	backend != "frontier"
}

# office
allowed if {
	input.workload == "chat"
	zurich := [input.time_ns, "Europe/Zurich"]
	hour := time.clock(zurich)[0]
	hour >= 8
	hour < 18
	time.weekday(zurich) in ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
}

# team
allowed if {
	input.claims.email_verified == true
	is_string(input.claims.email)
	endswith(input.claims.email, "@example.org")
	some group in group_names
	is_string(group)
	startswith(group, "team-")
	group == concat("", ["team-", input.tags.team])
}

# level
allowed if {
	is_number(input.claims.level)
	input.claims.level >= 5
	input.claims.level != 6
	name := input.claims.org.name
	not name in ["blocked", "größe"]
}

# quiet
allowed if {
	net.cidr_contains("192.168.7.9/32", input.source)
	every name, _ in input.tags { count(name) < 6 }
	count(input.claims) == 0
	input.time_ns >= time.parse_rfc3339_ns("2026-03-29T01:00:00Z")
}

# fresh
allowed if {
	is_number(input.claims.iat)
	input.claims.iat > 0
	floor(input.time_ns / 1000000000) - input.claims.iat < 3600
	count([backend | some backend in input.backends; backend == "edge"]) == 1
}

# mixed
allowed if {
	"any" in input.claims.mixed
	2.5 in input.claims.mixed
	input.claims.mixed[1] == [1, ["a", null]]
}
