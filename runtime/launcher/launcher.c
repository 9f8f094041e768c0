/* /opt/sandpod/bin/sandpod-runtime: starts the runtime in any image, also one of another libc or of none.
 *
 * It is linked statically, so nothing of the image is loaded for it. The image's own settings for the dynamic loader
 * (LD_PRELOAD, LD_LIBRARY_PATH, ...) are meant for the image's programs and would break ours: they travel on under the
 * name SANDPOD_KEEP_<name>, and the runtime gives them back to the commands that it runs.
 *
 * `--copy-to DIR` copies the whole directory instead: the init container's way of bringing it into an image.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static const char keep[] = "SANDPOD_KEEP_";

static _Noreturn void fail(const char *what, const char *path) {
    fprintf(stderr, "sandpod-runtime: %s %s: %s\n", what, path, strerror(errno));
    exit(127);
}

static void *need(void *memory) {
    if (!memory) fail("no", "memory");
    return memory;
}

/* The directory that this program is in, without /bin: /opt/sandpod, or wherever it was copied to. */
static void find_home(char home[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", home, PATH_MAX - 1);
    if (length < 0) {
        strcpy(home, "/opt/sandpod"); /* no /proc: where it belongs */
        return;
    }
    home[length] = 0;
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(home, '/');
        if (slash) *slash = 0;
    }
}

static void join(char out[PATH_MAX], const char *directory, const char *name) {
    if (snprintf(out, PATH_MAX, "%s/%s", directory, name) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        fail("cannot use", name);
    }
}

static void hide_loader_settings(void) {
    for (char **entry = environ; *entry; entry++) {
        if (strncmp(*entry, "LD_", 3) && strncmp(*entry, "GLIBC_TUNABLES=", 15)) continue;
        char *renamed = need(malloc(sizeof keep + strlen(*entry)));
        strcpy(renamed, keep);
        strcat(renamed, *entry);
        *entry = renamed;
    }
}

static void copy_file(const char *from, const char *to, const struct stat *info) {
    int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0) fail("cannot read", from);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, info->st_mode & 0777);
    if (out < 0) fail("cannot write", to);
    for (off_t left = info->st_size; left > 0;) {
        ssize_t done = sendfile(out, in, NULL, left);
        if (done < 0) fail("cannot copy to", to);
        if (done == 0) break;
        left -= done;
    }
    if (close(out)) fail("cannot finish", to);
    close(in);
}

static void copy_tree(const char *from, const char *to) {
    char source[PATH_MAX], target[PATH_MAX];
    struct stat info;
    DIR *directory = opendir(from);
    if (!directory) fail("cannot read", from);
    if (mkdir(to, 0755) && errno != EEXIST) fail("cannot make", to);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        join(source, from, entry->d_name);
        join(target, to, entry->d_name);
        if (lstat(source, &info)) fail("cannot read", source);
        if (S_ISDIR(info.st_mode)) copy_tree(source, target);
        else if (S_ISREG(info.st_mode)) copy_file(source, target, &info);
    }
    closedir(directory);
}

int main(int argc, char **argv) {
    char home[PATH_MAX], loader[PATH_MAX], libraries[PATH_MAX], python[PATH_MAX], boot[PATH_MAX];
    find_home(home);
    if (argc == 3 && !strcmp(argv[1], "--copy-to")) {
        umask(022); /* the sandbox may run as another user than this init container */
        copy_tree(home, argv[2]);
        return 0;
    }
    join(libraries, home, "lib");
    join(loader, libraries, LOADER);
    join(python, home, "bin/python3");
    join(boot, libraries, "boot.pyc");
    hide_loader_settings();
    char *start[] = {
        loader, "--inhibit-cache", "--library-path", libraries, /* only our libraries, no cache of the image's */
        python, "-I", "-S", "-B", "-X", "utf8", boot,           /* nothing of the image's Python, no site, no writes */
    };
    size_t count = sizeof start / sizeof *start;
    char **command = need(calloc(count + argc, sizeof *command));
    memcpy(command, start, sizeof start);
    memcpy(command + count, argv + 1, argc * sizeof *command); /* with the NULL that ends argv */
    execv(loader, command);
    fail("cannot start", loader);
}
