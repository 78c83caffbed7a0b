# A crontab, and a program that prints it as `crontab -l` does.
mkdir project
cat > crontab <<'END'
MAILTO=me@example.com
# nightly backup of the project
0 3 * * * tar -C ~ -czf ~/project.tar.gz project
*/15 8-18 * * 1-5 cd ~/project && ./check-mail
@reboot /usr/local/bin/start-agent
END
printf '#!/bin/sh\ncat ~/crontab\n' > ../bin/crontab
chmod +x ../bin/crontab
