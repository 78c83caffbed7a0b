/* A hostile program of a run, which attacks the daemon's socket:
 *   socket_attack orphan SOCKET OUT HELLO REQUEST   sends over connections whose creator has exited
 *   socket_attack hold SOCKET OUT HELLO             opens connections until one is refused, and keeps them
 */
#include <signal.h>
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

/* The daemon may have closed the connection. */
static void send_frame(int fd, const char *frame) {
    if (write(fd, frame, strlen(frame)) < 0 || write(fd, "\n", 1) < 0)
        close(fd);
}

/* Connects in a child process, which has exited when this returns. */
static int connect_in_child(const char *path) {
    struct sockaddr_un address;
    int fd = new_socket(path, &address);
    pid_t child = fork();
    if (child == 0)
        _exit(connect(fd, (struct sockaddr *)&address, sizeof address));
    waitpid(child, NULL, 0);
    return fd;
}

int main(int argc, char **argv) {
    char part[4096], bytes[65536];
    signal(SIGPIPE, SIG_IGN);
    if (argc < 5)
        return 2;
    snprintf(part, sizeof part, "%s.part", argv[3]);
    FILE *out = fopen(part, "w");
    if (!strcmp(argv[1], "orphan")) {
        for (int round = 0; round < 100; round++) {
            int fd = connect_in_child(argv[2]);
            send_frame(fd, argv[4]);
            send_frame(fd, argv[5]);
            shutdown(fd, SHUT_WR);
            for (ssize_t count; (count = read(fd, bytes, sizeof bytes)) > 0;)
                fwrite(bytes, 1, count, out);
            close(fd);
        }
    } else {
        struct sockaddr_un address;
        for (int number = 0; number < 400; number++) {
            int fd = new_socket(argv[2], &address);
            if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
                break;
            send_frame(fd, argv[4]);
        }
    }
    /* The result appears only when it is complete. */
    fclose(out);
    rename(part, argv[3]);
    while (strcmp(argv[1], "orphan"))
        pause();
    return 0;
}
