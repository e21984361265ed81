/* A stand-in for NVIDIA's management library: the functions that Drowse calls, with the layouts of nvml.h.
 *
 * What it does is written in the file SCRIPT, a line each, read again at every call:
 *
 *     devices N                    how many there are (2)
 *     answer FUNCTION DEVICE CODE  what a call answers; DEVICE is -1 for calls without one
 *     hang FUNCTION                the call does not return while this line stands
 *     process DEVICE PID           somebody with a compute context
 *     sample DEVICE PID AGE_MS COMPUTE MEMORY ENCODER DECODER
 *     grow N                       each list is N entries longer by the time it is asked for with room
 *     forget                       calls answer as if nobody had initialised the library, until somebody does
 *
 * Each question for samples adds a byte to the file SCRIPT.asked.
 *
 * Built without SAMPLES it lacks a function; with OLD it has only the first version of another.
 */
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

typedef struct device *nvmlDevice_t;

typedef struct {
    unsigned int pid;
    unsigned long long timeStamp;
    unsigned int smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;

static int initialised;

/* Calls `see` for each line until it answers something other than 0. */
static int each_line(int (*see)(const char *line, void *with), void *with) {
    FILE *script = fopen(SCRIPT, "r");
    char line[256];
    int said = 0;
    while (script && !said && fgets(line, sizeof line, script)) said = see(line, with);
    if (script) fclose(script);
    return said;
}

struct question { const char *function; int device; int answer; };

static int is_hung(const char *line, void *with) {
    char function[64];
    return sscanf(line, "hang %63s", function) == 1 && !strcmp(function, (const char *)with);
}

static int is_answer(const char *line, void *with) {
    struct question *asked = with;
    char function[64];
    int device, code;
    if (sscanf(line, "answer %63s %d %d", function, &device, &code) != 3) return 0;
    if (strcmp(function, asked->function) || device != asked->device) return 0;
    asked->answer = code;
    return 1;
}

static int is_forgotten(const char *line, void *with) { (void)with; return !strncmp(line, "forget", 6); }

static int answer(const char *function, int device) {
    struct question asked = { function, device, SUCCESS };
    while (each_line(is_hung, (void *)function)) usleep(1000);
    if (each_line(is_forgotten, NULL)) initialised = 0;
    if (strcmp(function, "nvmlInit_v2") && !initialised) return UNINITIALIZED;
    each_line(is_answer, &asked);
    return asked.answer;
}

static int see_number(const char *line, void *with) {
    int *number = (int *)with;
    return sscanf(line, number[0] ? "grow %d" : "devices %d", &number[1]) == 1;
}

static int number(int is_grow, int otherwise) {
    int number[2] = { is_grow, otherwise };
    each_line(see_number, number);
    return number[1];
}

/* Handles are the index plus one, so that none is null. */
static int index_of(nvmlDevice_t device) { return (int)(long)device - 1; }

int nvmlInit_v2(void) {
    int said = answer("nvmlInit_v2", -1);
    if (said == SUCCESS) initialised = 1;
    return said;
}

int nvmlShutdown(void) { initialised = 0; return SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned int *count) {
    int said = answer("nvmlDeviceGetCount_v2", -1);
    if (said == SUCCESS) *count = (unsigned int)number(0, 2);
    return said;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    int said = answer("nvmlDeviceGetHandleByIndex_v2", (int)index);
    if (said == SUCCESS) *device = (nvmlDevice_t)(long)(index + 1);
    return said;
}

struct listing { int device; unsigned long long since; unsigned int found; unsigned int pids[64];
                 nvmlProcessUtilizationSample_t samples[64]; };

static int see_process(const char *line, void *with) {
    struct listing *all = with;
    int device;
    unsigned int pid;
    if (all->found < 64 && sscanf(line, "process %d %u", &device, &pid) == 2 && device == all->device)
        all->pids[all->found++] = pid;
    return 0;
}

/* Answers with the number of entries, or says that there is not room enough, as the real one does. */
static int room(unsigned int found, unsigned int *count, const void *list) {
    unsigned int have = *count;
    unsigned int need = list ? found + (unsigned int)number(1, 0) : found;
    if (need && (!list || have < need)) { *count = found; return INSUFFICIENT_SIZE; }
    *count = found;
    return SUCCESS;
}

static int list_processes(nvmlDevice_t device, unsigned int *count, const void *list, struct listing *all) {
    int said = answer("nvmlDeviceGetComputeRunningProcesses", index_of(device));
    if (said != SUCCESS) return said;
    memset(all, 0, sizeof *all);
    all->device = index_of(device);
    each_line(see_process, all);
    return room(all->found, count, list);
}

#ifndef OLD
int nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *list) {
    struct listing all;
    int said = list_processes(device, count, list, &all);
    for (unsigned int i = 0; said == SUCCESS && i < all.found; i++)
        list[i] = (nvmlProcessInfo_v2_t){ all.pids[i], 1ULL << 60, 0xffffffff, 0xffffffff };
    return said;
}
#endif

int nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *list) {
    struct listing all;
    int said = list_processes(device, count, list, &all);
    for (unsigned int i = 0; said == SUCCESS && i < all.found; i++)
        list[i] = (nvmlProcessInfo_v1_t){ all.pids[i], 1ULL << 60 };
    return said;
}

#ifdef SAMPLES
static int see_sample(const char *line, void *with) {
    struct listing *all = with;
    nvmlProcessUtilizationSample_t sample;
    int device;
    unsigned long long age;
    struct timeval now;
    if (sscanf(line, "sample %d %u %llu %u %u %u %u", &device, &sample.pid, &age, &sample.smUtil, &sample.memUtil,
               &sample.encUtil, &sample.decUtil) != 7 || device != all->device || all->found == 64) return 0;
    gettimeofday(&now, NULL);
    sample.timeStamp = (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_usec - age * 1000;
    if (sample.timeStamp > all->since) all->samples[all->found++] = sample;
    return 0;
}

int nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *list, unsigned int *count,
                                    unsigned long long since) {
    struct listing all;
    FILE *asked = fopen(SCRIPT ".asked", "a");
    if (asked) { fputc('.', asked); fclose(asked); }
    int said = answer("nvmlDeviceGetProcessUtilization", index_of(device));
    if (said != SUCCESS) return said;
    memset(&all, 0, sizeof all);
    all.device = index_of(device);
    all.since = since;
    each_line(see_sample, &all);
    if (!all.found) return NOT_FOUND;
    said = room(all.found, count, list);
    if (said == SUCCESS) memcpy(list, all.samples, all.found * sizeof *list);
    return said;
}
#endif
