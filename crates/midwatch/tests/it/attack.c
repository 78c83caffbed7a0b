/* What a hostile program of a run does with the daemon's socket. Started as
 *   attack ghost SOCKET OUT HELLO REQUEST   speaks over a connection whose maker has gone
 *   attack hog SOCKET OUT HELLO             holds as many connections as it gets
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int new_socket(const char *path, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    strncpy(address->sun_path, path, sizeof address->sun_path - 1);
    return socket(AF_UNIX, SOCK_STREAM, 0);
}

static void say(int fd, const char *frame) {
    if (write(fd, frame, strlen(frame)) < 0 || write(fd, "\n", 1) < 0)
        _exit(3);
}

/* All that is said until the other end has nothing more, into a file that appears whole. */
static void keep(int fd, const char *out) {
    char part[4096], bytes[65536];
    snprintf(part, sizeof part, "%s.part", out);
    FILE *file = fopen(part, "w");
    if (fd >= 0)
        shutdown(fd, SHUT_WR);
    for (ssize_t count; fd >= 0 && (count = read(fd, bytes, sizeof bytes)) > 0;)
        fwrite(bytes, 1, count, file);
    fclose(file);
    rename(part, out);
}

int main(int argc, char **argv) {
    struct sockaddr_un address;
    if (argc == 6 && !strcmp(argv[1], "ghost")) {
        int fd = new_socket(argv[2], &address);
        pid_t child = fork();
        if (child == 0)
            _exit(connect(fd, (struct sockaddr *)&address, sizeof address));
        waitpid(child, NULL, 0);
        say(fd, argv[4]);
        say(fd, argv[5]);
        keep(fd, argv[3]);
        return 0;
    }
    if (argc == 5 && !strcmp(argv[1], "hog")) {
        for (int number = 0; number < 400; number++) {
            int fd = new_socket(argv[2], &address);
            if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
                break;
            if (write(fd, argv[4], strlen(argv[4])) < 0 || write(fd, "\n", 1) < 0)
                close(fd);
        }
        keep(-1, argv[3]);
        for (;;)
            pause();
    }
    return 2;
}
