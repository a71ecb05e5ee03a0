# Draws stack.svg and growth.svg from the instruction counts:
#   cargo bench --bench instructions -- --all > target/counts.txt
#   gnuplot benches/plots.gp
counts = "target/counts.txt"
count(case) = real(system("awk '$2 == \"" . case . "\" { print $1 }' " . counts))
set terminal svg size 900,400 font "sans-serif,13"
set grid y
set style fill solid 0.7

set output "benches/stack.svg"
set title "Instructions of a call of five nested keys, over the bare service"
set style data histograms
set boxwidth 0.7
set yrange [0:2700]
set xtics noenhanced
unset key
cases = "identities fused four boxed_futures boxed_services"
names = "'identity layers' 'hand-fused' 'four layers' 'boxed futures' 'boxed services'"
over(case) = count("stack/" . case) - count("stack/bare")
set print $bars
do for [i = 1:words(cases)] { print sprintf("\"%s\" %d", word(names, i), over(word(cases, i))) }
unset print
plot $bars using 2:xtic(1), "" using 0:2:2 with labels offset 0,0.7

set output "benches/growth.svg"
set title "Instructions of a clean scrub, as keys or tools are added"
set key right bottom
set logscale xy
set yrange [*:*]
set xtics auto
set xlabel "keys, or tools"
set print $keys
do for [n in "5 24 50 500 2000 5000"] { print sprintf("%s %d %d %d", n, count("scrub/flat/" . n), count("scrub/nested/" . n), count("scrub/touch/" . n)) }
set print $tools
do for [n in "7 28 138 552 5000"] { print sprintf("%s %d", n, count("schema/scrub/" . n)) }
unset print
plot $keys using 1:2 with linespoints title "flat arguments", "" using 1:3 with linespoints title "nested arguments", \
    "" using 1:4 with linespoints title "a touch of each key", $tools using 1:2 with linespoints title "schemas of the recorded tools"
