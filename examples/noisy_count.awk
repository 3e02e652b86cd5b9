# A release in another language, for `bandana audit-release 'exec:awk -f examples/noisy_count.awk'`: how many records are 1.
# It reads the data set, a JSON list, then one seed a line; for each it writes the count with two-sided geometric noise.

BEGIN { if (!epsilon) epsilon = 1 }

NR == 1 { count = gsub(/1/, "1"); next }

{
  srand($1 + 0)
  print count + geometric() - geometric()
}

function geometric() { return int(log(1 - rand()) / -epsilon) }
