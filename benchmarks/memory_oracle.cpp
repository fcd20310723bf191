// Asks llama.cpp where it would put a model and how much each device would hold, without weights
// and without cards: cards are invented here, which llama.cpp takes for CUDA's, and nothing is
// allocated. Reads a question a line from standard input, answers with a line each:
//
//   memory PATH n_ctx n_ubatch n_seq type_k type_v flash swa_full unified ngl nkvo split main TS OT
//       -> ok model context compute  model context compute ...   bytes, cards first, then the host
//   fit PATH n_ctx n_ubatch n_seq type_k type_v flash swa_full unified min_ctx margin...
//       -> ok -c N -ngl N [-ts A,B] [-ot PATTERN=BUFFER,...]  or  no
//
// TS is a comma list or -, OT is a list PATTERN=CARD;... or -. Arguments: bytes free of each card.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "fit.h"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "llama.h"

namespace {

struct card {
    std::string name;
    size_t free_bytes;
    ggml_backend_buffer_type buft;
    ggml_backend_device dev;
};

card * card_of(ggml_backend_dev_t dev) { return static_cast<card *>(dev->context); }

// The memory of an invented card is the processor's: only its size is ever asked for.
const char * buft_name(ggml_backend_buffer_type_t buft) {
    return static_cast<card *>(buft->context)->name.c_str();
}
ggml_backend_buffer_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
    buffer->buft = buft;
    return buffer;
}
size_t buft_alignment(ggml_backend_buffer_type_t) { return 128; }
// Rows of quantized matrices are padded to whole tiles, as CUDA's are.
size_t buft_alloc_size(ggml_backend_buffer_type_t, const ggml_tensor * tensor) {
    size_t size = ggml_nbytes(tensor);
    const int64_t rest = tensor->ne[0] % 512;
    if (ggml_is_quantized(tensor->type) && rest) {
        size += ggml_row_size(tensor->type, 512 - rest);
    }
    return size;
}
bool buft_is_host(ggml_backend_buffer_type_t) { return false; }

const char * backend_name(ggml_backend_t backend) { return card_of(backend->device)->name.c_str(); }
void backend_free(ggml_backend_t backend) { delete backend; }
void backend_synchronize(ggml_backend_t) {}
ggml_status backend_compute(ggml_backend_t, ggml_cgraph *) { return GGML_STATUS_SUCCESS; }
void backend_event(ggml_backend_t, ggml_backend_event_t) {}

const char * dev_name(ggml_backend_dev_t dev) { return card_of(dev)->name.c_str(); }
void dev_memory(ggml_backend_dev_t dev, size_t * free, size_t * total) {
    *free = *total = card_of(dev)->free_bytes;
}
enum ggml_backend_dev_type dev_type(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; }
void dev_props(ggml_backend_dev_t dev, ggml_backend_dev_props * props) {
    std::memset(props, 0, sizeof(*props));
    props->name = props->description = card_of(dev)->name.c_str();
    props->memory_free = props->memory_total = card_of(dev)->free_bytes;
    props->type = GGML_BACKEND_DEVICE_TYPE_GPU;
    props->caps.async = props->caps.events = true;
}
ggml_backend_t dev_init(ggml_backend_dev_t dev, const char *) {
    static ggml_guid guid = {};
    ggml_backend_i iface = {};
    iface.get_name = backend_name;
    iface.free = backend_free;
    iface.synchronize = backend_synchronize;
    iface.graph_compute = backend_compute;
    iface.event_record = backend_event;
    iface.event_wait = backend_event;
    return new ggml_backend{&guid, iface, dev, nullptr};
}
ggml_backend_buffer_type_t dev_buft(ggml_backend_dev_t dev) { return &card_of(dev)->buft; }
// Every operation of these models has a kernel for CUDA.
bool dev_supports_op(ggml_backend_dev_t, const ggml_tensor *) { return true; }
bool dev_supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    return buft->device == dev;
}
// Large batches are multiplied on the card by a copy of weights that lie in main memory.
bool dev_offload(ggml_backend_dev_t, const ggml_tensor * op) {
    const int64_t n = op->op == GGML_OP_GET_ROWS ? 0
        : op->op == GGML_OP_MUL_MAT              ? op->ne[1]
        : op->op == GGML_OP_MUL_MAT_ID           ? op->ne[2]
                                                 : ggml_nrows(op);
    return n >= 32;
}
ggml_backend_event_t dev_event_new(ggml_backend_dev_t dev) {
    return new ggml_backend_event{dev, nullptr};
}
void dev_event_free(ggml_backend_dev_t, ggml_backend_event_t event) { delete event; }
void dev_event_wait(ggml_backend_dev_t, ggml_backend_event_t) {}

size_t reg_count(ggml_backend_reg_t) { return 0; }
const char * reg_name(ggml_backend_reg_t) { return "CUDA"; }
ggml_backend_dev_t reg_device(ggml_backend_reg_t, size_t) { return nullptr; }
void * reg_address(ggml_backend_reg_t, const char *) { return nullptr; }
ggml_backend_reg reg = {
    GGML_BACKEND_API_VERSION, {reg_name, reg_count, reg_device, reg_address}, nullptr};

std::vector<card *> cards;

void add_card(size_t free_bytes) {
    card * c = new card{"CUDA" + std::to_string(cards.size()), free_bytes, {}, {}};
    c->buft.iface = {buft_name, buft_alloc, buft_alignment, nullptr, buft_alloc_size, buft_is_host};
    c->buft.device = &c->dev;
    c->buft.context = c;
    ggml_backend_device_i & i = c->dev.iface;
    i.get_name = i.get_description = dev_name;
    i.get_memory = dev_memory;
    i.get_type = dev_type;
    i.get_props = dev_props;
    i.init_backend = dev_init;
    i.get_buffer_type = dev_buft;
    i.supports_op = dev_supports_op;
    i.supports_buft = dev_supports_buft;
    i.offload_op = dev_offload;
    i.event_new = dev_event_new;
    i.event_free = dev_event_free;
    i.event_synchronize = dev_event_wait;
    c->dev.reg = &reg;
    c->dev.context = c;
    cards.push_back(c);
    ggml_backend_device_register(&c->dev);
}

struct question {
    std::string path;
    llama_model_params model = llama_model_default_params();
    llama_context_params context = llama_context_default_params();
};

ggml_type type_named(const std::string & name) {
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const char * known = ggml_type_name(ggml_type(i));
        if (known && name == known) {
            return ggml_type(i);
        }
    }
    return GGML_TYPE_F16;
}

question read(std::istream & in) {
    question q;
    std::string type_k, type_v;
    int flash, swa_full, unified;
    in >> q.path >> q.context.n_ctx >> q.context.n_ubatch >> q.context.n_seq_max >> type_k >>
        type_v >> flash >> swa_full >> unified;
    q.context.n_batch = 2048;
    q.context.type_k = type_named(type_k);
    q.context.type_v = type_named(type_v);
    q.context.flash_attn_type =
        flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    q.context.swa_full = swa_full;
    q.context.kv_unified = unified;
    q.model.use_extra_bufts = false;
    return q;
}

void answer_memory(std::istream & in) {
    question q = read(in);
    int nkvo;
    std::string split, ts, ot;
    in >> q.model.n_gpu_layers >> nkvo >> split >> q.model.main_gpu >> ts >> ot;
    q.context.offload_kqv = !nkvo;
    q.model.split_mode = split == "none" ? LLAMA_SPLIT_MODE_NONE : LLAMA_SPLIT_MODE_LAYER;
    std::vector<float> shares(llama_max_devices(), 0.0f);
    if (ts != "-") {
        std::stringstream list(ts);
        std::string part;
        for (size_t i = 0; std::getline(list, part, ',') && i < shares.size(); i++) {
            shares[i] = std::atof(part.c_str());
        }
        q.model.tensor_split = shares.data();
    }
    std::vector<std::string> patterns;
    std::vector<llama_model_tensor_buft_override> overrides;
    patterns.reserve(256);
    if (ot != "-") {
        std::stringstream list(ot);
        std::string part;
        while (std::getline(list, part, ';')) {
            const size_t at = part.rfind('=');
            const std::string target = part.substr(at + 1);
            ggml_backend_buffer_type_t buft = ggml_backend_cpu_buffer_type();
            for (card * c : cards) {
                buft = c->name == target ? &c->buft : buft;
            }
            patterns.push_back(part.substr(0, at));
            overrides.push_back({patterns.back().c_str(), buft});
        }
        overrides.push_back({nullptr, nullptr});
        q.model.tensor_buft_overrides = overrides.data();
    }
    std::vector<ggml_backend_dev_t> devs;
    uint32_t ngl, trained, experts;
    const auto found = common_get_device_memory_data(
        q.path.c_str(), &q.model, &q.context, devs, ngl, trained, experts, GGML_LOG_LEVEL_ERROR);
    std::printf("ok");
    for (const auto & d : found) {
        std::printf(" %zu %zu %zu", d.model, d.context, d.compute);
    }
    std::printf("\n");
}

void answer_fit(std::istream & in) {
    question q = read(in);
    uint32_t min_ctx;
    in >> min_ctx;
    std::vector<size_t> margins(llama_max_devices(), 0);
    for (size_t i = 0; i < margins.size() && in >> margins[i]; i++) {
    }
    std::vector<float> shares(llama_max_devices(), 0.0f);
    std::vector<llama_model_tensor_buft_override> overrides(
        llama_max_tensor_buft_overrides(), {nullptr, nullptr});
    const auto status = common_fit_params(
        q.path.c_str(), &q.model, &q.context, shares.data(), overrides.data(), margins.data(),
        min_ctx, nullptr, GGML_LOG_LEVEL_ERROR);
    if (status != COMMON_PARAMS_FIT_STATUS_SUCCESS) {
        std::printf("no\n");
        return;
    }
    std::printf("ok -c %u -ngl %d", q.context.n_ctx, q.model.n_gpu_layers);
    for (size_t i = 0; cards.size() > 1 && i < cards.size(); i++) {
        std::printf("%s%g", i ? "," : " -ts ", shares[i]);
    }
    for (size_t i = 0; i < overrides.size() && overrides[i].pattern; i++) {
        std::printf(
            "%s%s=%s", i ? "," : " -ot ", overrides[i].pattern,
            ggml_backend_buft_name(overrides[i].buft));
    }
    std::printf("\n");
}

}  // namespace

int main(int argc, char ** argv) {
    llama_backend_init();
    if (!std::getenv("ORACLE_VERBOSE")) {
        llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    }
    for (int i = 1; i < argc; i++) {
        add_card(std::strtoull(argv[i], nullptr, 10));
    }
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream in(line);
        std::string kind;
        in >> kind;
        try {
            kind == "fit" ? answer_fit(in) : answer_memory(in);
        } catch (const std::exception & error) {
            std::printf("error %s\n", error.what());
        }
        std::fflush(stdout);
    }
    return 0;
}
