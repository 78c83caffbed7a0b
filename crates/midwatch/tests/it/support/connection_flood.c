/* Attacks the daemon's socket with many processes:
 *   connection_flood hang-up SOCKET READY PROCESSES   each connects and hangs up, for ever
 *   connection_flood idle SOCKET READY PROCESSES      each keeps 250 connections and sends nothing
 *   connection_flood large SOCKET READY PROCESSES TEXT   each keeps 4 connections, and sends on each the text and then
 *                                                        15 MB without an end
 * READY appears when all have begun, or sent what they could.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_to(const char *path) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        _exit(1);
    return fd;
}

/* Sends what the other end accepts. */
static void send_large(int fd, const char *text) {
    static char zeros[1 << 16];
    memset(zeros, '0', sizeof zeros);
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        return;
    for (int sent = 0; sent < 15 * (1 << 20); sent += sizeof zeros)
        if (send(fd, zeros, sizeof zeros, MSG_NOSIGNAL) < 0)
            return;
}

int main(int argc, char **argv) {
    int begun[2];
    char byte;
    if (argc < 5 || pipe(begun) != 0)
        return 2;
    int hangs_up = !strcmp(argv[1], "hang-up"), processes = atoi(argv[4]);
    int sends = !strcmp(argv[1], "large") && argc == 6, connections = sends ? 4 : 250;
    for (int number = 0; number < processes; number++) {
        if (fork() != 0)
            continue;
        for (int connection = 0; hangs_up || connection < connections; connection++) {
            int fd = connect_to(argv[2]);
            if (connection == 0 && hangs_up && write(begun[1], "x", 1) != 1)
                _exit(1);
            if (sends)
                send_large(fd, argv[5]);
            if (hangs_up)
                close(fd);
        }
        if (write(begun[1], "x", 1) != 1)
            _exit(1);
        pause();
    }
    for (int number = 0; number < processes; number++)
        if (read(begun[0], &byte, 1) != 1)
            return 1;
    close(open(argv[3], O_CREAT | O_WRONLY, 0600));
    pause();
    return 0;
}
